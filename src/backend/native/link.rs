//! The link between the two namespaces, made over netlink: a veth pair, or loopback.

use std::future::Future;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::{Duration, Instant};

use futures_util::TryStreamExt;
use netlink_packet_route::address::{AddressAttribute, AddressFlags, AddressHeaderFlags};
use netlink_packet_route::link::{InfoData, InfoKind, InfoVeth, LinkAttribute, State};
use rtnetlink::{Handle, LinkMessageBuilder, LinkUnspec, LinkVeth};

use crate::measurement::{Interface, Outcome};
use crate::settings::{Family, Link, LinkEnd, Topology};
use crate::workload::Addresses;

use super::schedule::ScheduleError;
use super::sysctls::SysctlError;
use super::{offload, qdisc};

/// The name of each end's interface in its own namespace.
const NAME: &str = "sweep0";
/// Its index there: namespaces are new, so it is free, and need not be looked up.
const INDEX: u32 = 7;
/// The index of the loopback interface in every namespace (`LOOPBACK_IFINDEX`).
const LOOPBACK_INDEX: u32 = 1;
/// The name of the loopback interface in every namespace.
const LOOPBACK: &str = "lo";

/// How long the link may take to pass packets, and how often it is asked.
const UP_DEADLINE: Duration = Duration::from_secs(5);
const UP_PERIOD: Duration = Duration::from_micros(100);

/// Addresses for benchmarks of network devices (198.18.0.0/15, RFC 2544 and RFC 6890).
const CLIENT_V4: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 2);
const SERVER_V4: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
/// Unique local addresses (`fd00::/8`, RFC 4193).
const CLIENT_V6: Ipv6Addr = Ipv6Addr::new(0xfd73, 0x7765, 0x6570, 0, 0, 0, 0, 2);
const SERVER_V6: Ipv6Addr = Ipv6Addr::new(0xfd73, 0x7765, 0x6570, 0, 0, 0, 0, 1);

/// Why the namespaces or the link could not be made.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// A namespace could not be made or entered.
    #[error(
        "no network namespace could be made: {0}; run as root, allow user namespaces, or use a guest with kernel.image"
    )]
    Namespace(io::Error),
    /// The kernel refused a part of the link.
    #[error("the kernel refuses {what}: {error}")]
    Refused {
        /// Which part.
        what: String,
        /// What the kernel said.
        error: rtnetlink::Error,
    },
    /// A queue could not be set up.
    #[error("{}", queue_message(.kind, .error))]
    Queue {
        /// The queue discipline.
        kind: &'static str,
        /// What the kernel said.
        error: rtnetlink::Error,
    },
    /// An offload could not be set.
    #[error("`{name}` cannot be turned {on} on this device ({command}: {error})")]
    Offload {
        /// Its name in a sweep file.
        name: &'static str,
        /// What was asked.
        on: &'static str,
        /// The command that sets it.
        command: &'static str,
        /// What the kernel said.
        error: io::Error,
    },
    /// An offload was set and did not change.
    #[error("`{name}` was turned {asked} and stays {given}: it depends on another offload, such as the checksum")]
    OffloadStays {
        /// Its name in a sweep file.
        name: &'static str,
        /// What was asked.
        asked: &'static str,
        /// What it is.
        given: &'static str,
    },
    /// A sysctl could not be set.
    #[error(transparent)]
    Sysctl(#[from] SysctlError),
    /// A thread could not be placed.
    #[error(transparent)]
    Schedule(#[from] ScheduleError),
    /// A netlink socket could not be opened.
    #[error("no netlink socket could be opened: {0}")]
    Netlink(io::Error),
    /// The link stands and passes nothing.
    #[error("the link did not come up within 5 s: its state is `{0}`")]
    NeverUp(String),
    /// The thread of the other end is gone.
    #[error("the other end's thread ended before the link stood")]
    OtherEnd,
}

impl LinkError {
    /// Which outcome this is.
    pub fn outcome(&self) -> Outcome {
        match self {
            Self::Namespace(_) | Self::Schedule(_) => Outcome::Skipped,
            Self::Sysctl(error) => error.outcome(),
            Self::OffloadStays { .. } => Outcome::Invalid,
            Self::Offload { error, .. } => match error.raw_os_error() {
                Some(libc::EOPNOTSUPP | libc::EPERM) => Outcome::Skipped,
                Some(libc::EINVAL) => Outcome::Invalid,
                _ => Outcome::Failed,
            },
            Self::Queue { error, .. } if code(error) == Some(libc::ENOENT) => Outcome::Skipped,
            Self::Refused { error, .. } | Self::Queue { error, .. } => match code(error) {
                Some(libc::EOPNOTSUPP | libc::EPERM) => Outcome::Skipped,
                Some(_) => Outcome::Invalid,
                None => Outcome::Failed,
            },
            Self::Netlink(_) | Self::NeverUp(_) | Self::OtherEnd => Outcome::Failed,
        }
    }
}

/// The error number in a netlink answer.
fn code(error: &rtnetlink::Error) -> Option<i32> {
    match error {
        rtnetlink::Error::NetlinkError(message) => message.code.map(|code| -code.get()),
        _ => None,
    }
}

/// What is said of a queue that could not be set up.
fn queue_message(kind: &str, error: &rtnetlink::Error) -> String {
    match code(error) {
        Some(libc::ENOENT) => format!(
            "no queue discipline `{kind}` in this kernel: use kernel.image = \"auto\", or name a kernel such as \"debian:6.12\", to run this in a guest"
        ),
        _ => format!("the kernel refuses the queue discipline `{kind}` as asked: {error}"),
    }
}

/// The first of these queue disciplines that this kernel does not have, found by trying each in the calling thread's namespace.
pub(super) fn absent_queue(kinds: &[&'static str]) -> Result<Option<&'static str>, LinkError> {
    let mut absent = None;
    with_netlink(async |handle| {
        for kind in kinds {
            // Most are refused here for lack of options. Only one that is not there at all is not found.
            if let Err(error) = qdisc::try_out(&handle, LOOPBACK_INDEX, kind).await
                && code(&error) == Some(libc::ENOENT)
            {
                absent = Some(*kind);
                break;
            }
        }
        Ok(())
    })?;
    Ok(absent)
}

/// What one end's device is and has counted. Called in the namespace of that end.
pub(super) fn read(link: &Link, end: &LinkEnd) -> Result<Interface, LinkError> {
    let (device, index) = device(link);
    let mut interface = offload::read(device, end);
    with_netlink(async |handle| {
        interface.queues = qdisc::read(&handle, index).await?;
        let message = look(&handle, index).await?;
        for attribute in message.map(|message| message.attributes).unwrap_or_default() {
            match attribute {
                LinkAttribute::Mtu(mtu) => interface.mtu = Some(mtu),
                LinkAttribute::GsoMaxSegs(segments) => interface.gso_max_segs = Some(segments),
                _ => {}
            }
        }
        Ok(())
    })?;
    Ok(interface)
}

/// The device that an end sends through, and its index.
pub(super) fn device(link: &Link) -> (&'static str, u32) {
    match link.topology {
        Topology::Veth => (NAME, INDEX),
        Topology::Loopback => (LOOPBACK, LOOPBACK_INDEX),
    }
}

/// Sets up what an end sends through, before its first packet passes.
async fn shape(handle: &Handle, link: &Link, end: &LinkEnd) -> Result<(), LinkError> {
    let (device, index) = device(link);
    offload::set_up(device, end)?;
    if let Some(segments) = end.gso_max_segs {
        let mut message = LinkUnspec::new_with_index(index).build();
        message.attributes.push(LinkAttribute::GsoMaxSegs(segments));
        let what = format!("gso_max_segs = {segments}");
        handle.link().set(message).execute().await.map_err(|error| LinkError::Refused { what, error })?;
    }
    qdisc::set_up(handle, index, end, link.mtu_bytes()).await
}

/// The device of that index, if there is one.
async fn look(handle: &Handle, index: u32) -> Result<Option<netlink_packet_route::link::LinkMessage>, LinkError> {
    let mut links = handle.link().get().match_index(index).execute();
    links.try_next().await.map_err(|error| LinkError::Refused { what: "to be asked".to_owned(), error })
}

/// The addresses of both ends.
pub(super) fn addresses(link: &Link) -> Addresses {
    match (link.topology, link.family) {
        (Topology::Veth, Family::Ipv4) => Addresses { client: CLIENT_V4.into(), server: SERVER_V4.into() },
        (Topology::Veth, Family::Ipv6) => Addresses { client: CLIENT_V6.into(), server: SERVER_V6.into() },
        (Topology::Loopback, Family::Ipv4) => {
            Addresses { client: Ipv4Addr::LOCALHOST.into(), server: Ipv4Addr::LOCALHOST.into() }
        }
        (Topology::Loopback, Family::Ipv6) => {
            Addresses { client: Ipv6Addr::LOCALHOST.into(), server: Ipv6Addr::LOCALHOST.into() }
        }
    }
}

/// Makes the veth pair, its far end in the client's namespace, sets up the near end, and calls `stands`, on which the client sets
/// up the far end. Returns when packets pass, or when `expects_client` says that the far end will never stand. Called in the server's namespace.
pub(super) fn make_server(
    link: &Link,
    client: BorrowedFd<'_>,
    stands: impl FnOnce() -> Result<(), LinkError>,
    expects_client: impl FnMut() -> bool,
) -> Result<(), LinkError> {
    with_netlink(async |handle| {
        handle
            .link()
            .add(veth(link, client))
            .execute()
            .await
            .map_err(|error| LinkError::Refused { what: describe(link), error })?;
        set_up(&handle, link, &link.server, addresses(link).server).await?;
        stands()?;
        wait_until_running(&handle, expects_client).await
    })
}

/// Sets up the far end of the veth pair. Called in the client's namespace.
pub(super) fn make_client(link: &Link) -> Result<(), LinkError> {
    with_netlink(async |handle| set_up(&handle, link, &link.client, addresses(link).client).await)
}

/// Sets up loopback as the link.
pub(super) fn make_loopback(link: &Link) -> Result<(), LinkError> {
    with_netlink(async |handle| {
        shape(&handle, link, &link.server).await?;
        let mut message = LinkUnspec::new_with_index(LOOPBACK_INDEX).up();
        if let Some(mtu) = link.mtu {
            message = message.mtu(mtu);
        }
        handle
            .link()
            .set(message.build())
            .execute()
            .await
            .map_err(|error| LinkError::Refused { what: describe(link), error })
    })
}

/// The request that makes both ends at once, each with its index, name and MTU, the far one in the client's namespace.
fn veth(link: &Link, client: BorrowedFd<'_>) -> netlink_packet_route::link::LinkMessage {
    let end = |mut attributes: Vec<LinkAttribute>| {
        attributes.push(LinkAttribute::IfName(NAME.to_owned()));
        attributes.extend(link.mtu.map(LinkAttribute::Mtu));
        attributes
    };
    let mut far = LinkMessageBuilder::<LinkUnspec>::new().build();
    far.header.index = INDEX;
    far.attributes = end(vec![LinkAttribute::NetNsFd(client.as_raw_fd())]);
    let mut near = LinkMessageBuilder::<LinkVeth>::new_with_info_kind(InfoKind::Veth)
        .set_info_data(InfoData::Veth(InfoVeth::Peer(far)))
        .build();
    near.header.index = INDEX;
    near.attributes = end(near.attributes);
    near
}

/// What a link is called in messages.
fn describe(link: &Link) -> String {
    match link.mtu {
        Some(mtu) => format!("a {} link with an MTU of {mtu}", link.topology),
        None => format!("a {} link", link.topology),
    }
}

/// Sets up the interface of an end, brings it and loopback up, and gives it its address.
async fn set_up(handle: &Handle, link: &Link, end: &LinkEnd, address: IpAddr) -> Result<(), LinkError> {
    shape(handle, link, end).await?;
    let refused = |what: &str| {
        let what = what.to_owned();
        |error| LinkError::Refused { what, error }
    };
    for index in [LOOPBACK_INDEX, INDEX] {
        handle
            .link()
            .set(LinkUnspec::new_with_index(index).up().build())
            .execute()
            .await
            .map_err(refused("to bring an interface up"))?;
    }
    let prefix = if address.is_ipv6() { 64 } else { 24 };
    let mut request = handle.address().add(INDEX, address, prefix);
    if address.is_ipv6() {
        // Without this the address cannot be used for a second, while the kernel looks for duplicates (RFC 4862).
        let message = request.message_mut();
        message.header.flags |= AddressHeaderFlags::Nodad;
        message.attributes.push(AddressAttribute::Flags(AddressFlags::Nodad));
    }
    request.execute().await.map_err(refused(&format!("the address {address}")))
}

/// Waits until the interface passes packets. The end that was set up first has no carrier until the other is up too, and the
/// kernel takes note of that in a work queue (`linkwatch_do_dev`): what is sent before is lost, and the first segment of a
/// connection would be sent again only a second later.
async fn wait_until_running(handle: &Handle, mut expects_client: impl FnMut() -> bool) -> Result<(), LinkError> {
    let begun = Instant::now();
    loop {
        let message = look(handle, INDEX).await?;
        let state = message.and_then(|message| {
            message.attributes.into_iter().find_map(|attribute| match attribute {
                LinkAttribute::OperState(state) => Some(state),
                _ => None,
            })
        });
        if state == Some(State::Up) {
            return Ok(());
        }
        if !expects_client() {
            return Err(LinkError::OtherEnd);
        }
        if begun.elapsed() > UP_DEADLINE {
            return Err(LinkError::NeverUp(state.map_or_else(|| "unknown".to_owned(), |state| format!("{state:?}"))));
        }
        // A timer of the runtime has a grain of a millisecond, longer than the whole wait, and nothing else runs here.
        std::thread::sleep(UP_PERIOD);
    }
}

/// Runs `work` with a netlink socket of the calling thread's namespace.
fn with_netlink<F>(work: impl FnOnce(Handle) -> F) -> Result<(), LinkError>
where
    F: Future<Output = Result<(), LinkError>>,
{
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(LinkError::Netlink)?;
    runtime.block_on(async {
        let (connection, handle, _) = rtnetlink::new_connection().map_err(LinkError::Netlink)?;
        let driver = tokio::spawn(connection);
        let result = work(handle).await;
        driver.abort();
        result
    })
}
