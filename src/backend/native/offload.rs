//! Offloads of a device, set and read back.

use std::io;

use crate::measurement::{Interface, Switch};
use crate::settings::LinkEnd;
use crate::sys::device::{Devices, GRO, GSO, Offload, RX_CHECKSUM, TSO, TX_CHECKSUM};

use super::link::LinkError;

/// What may be asked of a device, with its name in a sweep file. Checksums come first: without them there is no TSO.
fn asked(end: &LinkEnd) -> [(Offload, &'static str, Option<bool>); 5] {
    [
        (TX_CHECKSUM, "tx_checksum", end.tx_checksum),
        (RX_CHECKSUM, "rx_checksum", end.rx_checksum),
        (TSO, "tso", end.tso),
        (GSO, "gso", end.gso),
        (GRO, "gro", end.gro),
    ]
}

/// Sets what is asked of a device of this thread's namespace, and looks whether it took.
pub(super) fn set_up(device: &str, end: &LinkEnd) -> Result<(), LinkError> {
    if asked(end).iter().all(|(.., on)| on.is_none()) {
        return Ok(());
    }
    let devices = Devices::open().map_err(LinkError::Netlink)?;
    let word = |on: bool| if on { "on" } else { "off" };
    for (offload, name, on) in asked(end) {
        let Some(on) = on else { continue };
        let refused = |error: io::Error| LinkError::Offload { name, on: word(on), command: offload.name, error };
        devices.set_offload(device, offload, on).map_err(refused)?;
        if devices.offload(device, offload).map_err(refused)? != on {
            return Err(LinkError::OffloadStays { name, asked: word(on), given: word(!on) });
        }
    }
    Ok(())
}

/// What a device of this thread's namespace does.
pub(super) fn read(device: &str, end: &LinkEnd) -> Interface {
    let mut interface = Interface::default();
    let devices = Devices::open().ok();
    for (offload, name, on) in asked(end) {
        let switch =
            Switch { asked: on, given: devices.as_ref().and_then(|devices| devices.offload(device, offload).ok()) };
        match name {
            "tx_checksum" => interface.tx_checksum = switch,
            "rx_checksum" => interface.rx_checksum = switch,
            "tso" => interface.tso = switch,
            "gso" => interface.gso = switch,
            _ => interface.gro = switch,
        }
    }
    interface
}
