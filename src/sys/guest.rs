//! What PID 1 of a guest needs: mounts, modules, port I/O, raw serial ports, and an end.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;

use super::check;

/// Mounts a file system that needs no device, such as `proc` on `/proc`.
///
/// # Errors
/// What `mount(2)` says; `EBUSY` where it is mounted already.
pub fn mount(kind: &str, target: &str) -> io::Result<()> {
    let (kind, target) = (CString::new(kind)?, CString::new(target)?);
    // SAFETY: the three strings are valid and end in NUL; no data is passed.
    check(unsafe { libc::mount(kind.as_ptr(), target.as_ptr(), kind.as_ptr(), 0, std::ptr::null()) }).map(drop)
}

/// Mounts a folder on itself: it can then be written where what it lies in cannot ([`make_read_only`]).
///
/// # Errors
/// What `mount(2)` says.
pub fn bind_to_itself(folder: &str) -> io::Result<()> {
    let folder = CString::new(folder)?;
    let none = std::ptr::null();
    // SAFETY: the string is valid and ends in NUL, and is both source and target; kind and data are not looked at for `MS_BIND`.
    check(unsafe { libc::mount(folder.as_ptr(), folder.as_ptr(), none, libc::MS_BIND, none.cast()) }).map(drop)
}

/// Lets nothing be written below a mount point, except where something else is mounted.
///
/// # Errors
/// `EINVAL` where nothing is mounted.
pub fn make_read_only(mount_point: &str) -> io::Result<()> {
    let mount_point = CString::new(mount_point)?;
    let none = std::ptr::null();
    let flags = libc::MS_BIND | libc::MS_REMOUNT | libc::MS_RDONLY;
    // SAFETY: the string is valid and ends in NUL; the others are not looked at for a change of flags.
    check(unsafe { libc::mount(none, mount_point.as_ptr(), none, flags, none.cast()) }).map(drop)
}

/// Loads a kernel module from a file (`finit_module(2)`). One that is loaded already is not an error.
///
/// # Errors
/// `ENOENT` for an unknown symbol, `ENOEXEC` for a module of another kernel.
pub fn load_module(path: &Path) -> io::Result<()> {
    let file = File::open(path)?;
    // SAFETY: the descriptor is open during the call and the parameters are an empty string.
    let returned = unsafe { libc::syscall(libc::SYS_finit_module, file.as_raw_fd(), c"".as_ptr(), 0) };
    match check(libc::c_int::try_from(returned).unwrap_or(-1)) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other.map(drop),
    }
}

/// Ends the machine: under `qemu -no-reboot` a restart is the shortest way out. Returns only if the kernel refuses.
pub fn restart_machine() -> io::Error {
    // SAFETY: `sync` has no arguments; `reboot` with this command touches no memory of ours.
    unsafe {
        libc::sync();
        libc::reboot(libc::RB_AUTOBOOT);
    }
    io::Error::last_os_error()
}

/// Sets a terminal to pass bytes as they are: no echo, no line editing, no translation of line ends.
///
/// # Errors
/// `ENOTTY` where it is no terminal.
pub fn make_raw(terminal: &File) -> io::Result<()> {
    // SAFETY: all-zero is a valid `termios`.
    let mut settings: libc::termios = unsafe { std::mem::zeroed() };
    // SAFETY: `settings` is valid for writes during the call.
    check(unsafe { libc::tcgetattr(terminal.as_raw_fd(), &raw mut settings) })?;
    // SAFETY: `settings` is a valid `termios`; the calls read and write it only.
    check(unsafe {
        libc::cfmakeraw(&raw mut settings);
        libc::cfsetspeed(&raw mut settings, libc::B115200);
        libc::tcsetattr(terminal.as_raw_fd(), libc::TCSANOW, &raw const settings)
    })
    .map(drop)
}

/// Waits until everything written to a terminal has left it (`tcdrain(3)`).
///
/// # Errors
/// What `tcdrain(3)` says.
pub fn drain(terminal: &File) -> io::Result<()> {
    // SAFETY: the descriptor is open during the call.
    check(unsafe { libc::tcdrain(terminal.as_raw_fd()) }).map(drop)
}

/// After how many seconds the watchdog of [`port::start_watchdog`] fires.
pub const WATCHDOG_SECONDS: u64 = 2;

/// Port I/O of x86: the way to QEMU's firmware configuration and watchdog devices without any driver.
#[cfg(target_arch = "x86_64")]
pub mod port {
    use std::arch::asm;
    use std::io;

    use crate::sys::check;

    /// QEMU's firmware configuration device: selector, then data (`docs/specs/fw_cfg`).
    const FW_CFG_SELECTOR: u16 = 0x510;
    const FW_CFG_DATA: u16 = 0x511;
    /// Key of the directory of files.
    const FW_CFG_DIRECTORY: u16 = 0x19;
    /// The iBASE 700 watchdog: any write here stops it, and a write there starts it (`wdt_ib700.c` of QEMU).
    const IB700_STOP: u16 = 0x441;
    const IB700_START: u16 = 0x443;

    /// Allows the calling thread to use a range of ports.
    fn allow(first: u16, count: u16) -> io::Result<()> {
        // SAFETY: `ioperm` changes only which ports the thread may use; it fails without `CAP_SYS_RAWIO`.
        check(unsafe { libc::ioperm(first.into(), count.into(), 1) }).map(drop)
    }

    fn read_byte(port: u16) -> u8 {
        let value: u8;
        // SAFETY: `allow` has been called for this port; reading it touches no memory.
        unsafe { asm!("in al, dx", in("dx") port, out("al") value, options(nomem, nostack, preserves_flags)) };
        value
    }

    fn write_byte(port: u16, value: u8) {
        // SAFETY: `allow` has been called for this port; writing it touches no memory of ours.
        unsafe { asm!("out dx, al", in("dx") port, in("al") value, options(nomem, nostack, preserves_flags)) };
    }

    fn write_word(port: u16, value: u16) {
        // SAFETY: as for `write_byte`.
        unsafe { asm!("out dx, ax", in("dx") port, in("ax") value, options(nomem, nostack, preserves_flags)) };
    }

    fn read_array<const N: usize>() -> [u8; N] {
        std::array::from_fn(|_| read_byte(FW_CFG_DATA))
    }

    /// The content of a file that QEMU was given with `-fw_cfg name=NAME`, or `None` if there is no such file.
    ///
    /// # Errors
    /// Without `CAP_SYS_RAWIO`.
    pub fn read_fw_cfg(name: &str) -> io::Result<Option<Vec<u8>>> {
        allow(FW_CFG_SELECTOR, 2)?;
        write_word(FW_CFG_SELECTOR, FW_CFG_DIRECTORY);
        let count = u32::from_be_bytes(read_array());
        for _ in 0..count {
            // struct FWCfgFile: size and select are big-endian, then 16 reserved bits and a name of 56 bytes.
            let size = u32::from_be_bytes(read_array());
            let select = u16::from_be_bytes(read_array());
            let _reserved: [u8; 2] = read_array();
            let entry: [u8; 56] = read_array();
            let end = entry.iter().position(|&byte| byte == 0).unwrap_or(entry.len());
            if &entry[..end] == name.as_bytes() {
                write_word(FW_CFG_SELECTOR, select);
                return Ok(Some((0..size).map(|_| read_byte(FW_CFG_DATA)).collect()));
            }
        }
        Ok(None)
    }

    /// Starts the watchdog that QEMU has with `-device ib700`. It fires `WATCHDOG_SECONDS` from now.
    ///
    /// # Errors
    /// Without `CAP_SYS_RAWIO`.
    pub fn start_watchdog() -> io::Result<()> {
        allow(IB700_STOP, 3)?;
        // The low four bits count down from 30 s in steps of 2 s.
        const { assert!(super::WATCHDOG_SECONDS == 2) };
        write_byte(IB700_START, 0xe);
        Ok(())
    }

    /// Stops the watchdog.
    ///
    /// # Errors
    /// Without `CAP_SYS_RAWIO`.
    pub fn stop_watchdog() -> io::Result<()> {
        allow(IB700_STOP, 3)?;
        write_byte(IB700_STOP, 0);
        Ok(())
    }
}

/// Elsewhere than on x86 there is no port I/O.
#[cfg(not(target_arch = "x86_64"))]
pub mod port {
    use std::io;

    /// Not on this architecture.
    ///
    /// # Errors
    /// Always.
    pub fn read_fw_cfg(_name: &str) -> io::Result<Option<Vec<u8>>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Not on this architecture.
    ///
    /// # Errors
    /// Always.
    pub fn start_watchdog() -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Not on this architecture.
    ///
    /// # Errors
    /// Always.
    pub fn stop_watchdog() -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}
