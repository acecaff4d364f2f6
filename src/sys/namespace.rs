//! Network and user namespaces.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use super::check;

/// Moves the calling thread into a new, empty network namespace (`CLONE_NEWNET`).
///
/// The namespace has no name: it ends with the last thread, socket and descriptor in it, however the process dies.
///
/// # Errors
/// `EPERM` without `CAP_SYS_ADMIN` in the current user namespace; `ENOSPC` beyond `user.max_net_namespaces`.
pub fn enter_new_network() -> io::Result<()> {
    // SAFETY: unsharing the network namespace changes only the calling thread's view of the network.
    check(unsafe { libc::unshare(libc::CLONE_NEWNET) }).map(drop)
}

/// Moves the calling thread into the network namespace behind a descriptor (`setns(2)`).
///
/// # Errors
/// `EPERM` without `CAP_SYS_ADMIN` in the namespace's user namespace.
pub fn enter_network(namespace: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: changes only the calling thread's view of the network; the descriptor is open for the call.
    check(unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) }).map(drop)
}

/// The calling thread's network namespace.
///
/// # Errors
/// When /proc is not mounted.
pub fn current_network() -> io::Result<File> {
    File::open("/proc/thread-self/ns/net")
}

/// Whether the calling thread may make network namespaces as it is.
pub fn may_unshare_network() -> bool {
    const CAP_NET_ADMIN: u32 = 12;
    const CAP_SYS_ADMIN: u32 = 21;
    effective_capabilities().is_some_and(|set| set >> CAP_NET_ADMIN & 1 == 1 && set >> CAP_SYS_ADMIN & 1 == 1)
}

/// The calling thread's effective capabilities as a bit set (`CapEff` of /proc/thread-self/status).
fn effective_capabilities() -> Option<u64> {
    let status = fs::read_to_string("/proc/thread-self/status").ok()?;
    let hex = status.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
    u64::from_str_radix(hex.trim(), 16).ok()
}

/// Why an ordinary user may not make a user namespace here, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum UserNamespaceError {
    /// The process already has more than one thread, and then the kernel refuses (`EINVAL`).
    #[error("a user namespace can only be entered by a process with a single thread, and this one has {0}")]
    Threads(usize),
    /// A sysctl forbids it.
    #[error("this host refuses user namespaces to ordinary users: {sysctl} is {value}; {remedy}")]
    Sysctl {
        /// Name of the sysctl.
        sysctl: &'static str,
        /// Its value.
        value: String,
        /// What to do.
        remedy: &'static str,
    },
    /// The kernel refused for a reason that no known sysctl explains.
    #[error("this host refuses user namespaces to ordinary users ({0}): run as root, or use a guest with kernel.image")]
    Refused(io::Error),
    /// The identity map of the new namespace could not be written.
    #[error("cannot write {file} of the new user namespace: {error}")]
    Map {
        /// The file below /proc/self.
        file: &'static str,
        /// Why not.
        error: io::Error,
    },
}

/// Sysctls that keep ordinary users out of user namespaces, the value that does, and the way out.
const REFUSING_SYSCTLS: [(&str, &str, &str, &str); 3] = [
    (
        "kernel.apparmor_restrict_unprivileged_userns",
        "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
        "1",
        "set it to 0 (sysctl -w kernel.apparmor_restrict_unprivileged_userns=0), run as root, or use a guest with kernel.image",
    ),
    (
        "kernel.unprivileged_userns_clone",
        "/proc/sys/kernel/unprivileged_userns_clone",
        "0",
        "set it to 1 (sysctl -w kernel.unprivileged_userns_clone=1), run as root, or use a guest with kernel.image",
    ),
    (
        "user.max_user_namespaces",
        "/proc/sys/user/max_user_namespaces",
        "0",
        "raise it (sysctl -w user.max_user_namespaces=10000), run as root, or use a guest with kernel.image",
    ),
];

/// The sysctl that refuses, among those that exist here.
fn refusing_sysctl() -> Option<UserNamespaceError> {
    REFUSING_SYSCTLS.iter().find_map(|&(sysctl, path, refusing, remedy)| {
        let value = fs::read_to_string(path).ok()?.trim().to_owned();
        (value == refusing).then_some(UserNamespaceError::Sysctl { sysctl, value, remedy })
    })
}

/// Moves the whole process into a new user namespace in which it keeps its own user and group numbers and has every
/// capability. Must be called while the process has a single thread.
///
/// # Errors
/// Names the sysctl that refuses, where one does, and the way out.
pub fn enter_user_namespace() -> Result<(), UserNamespaceError> {
    let threads = fs::read_dir("/proc/self/task").map_or(1, Iterator::count);
    if threads > 1 {
        return Err(UserNamespaceError::Threads(threads));
    }
    // SAFETY: these calls only read the process's identity.
    let (user, group) = unsafe { (libc::geteuid(), libc::getegid()) };
    // SAFETY: the process has a single thread, so no other thread's view of identities changes under it.
    if let Err(error) = check(unsafe { libc::unshare(libc::CLONE_NEWUSER) }) {
        return Err(refusing_sysctl().unwrap_or(UserNamespaceError::Refused(error)));
    }
    let write = |file: &'static str, text: String| {
        fs::write(format!("/proc/self/{file}"), text).map_err(|error| {
            // AppArmor lets the namespace be made and then withholds its capabilities.
            refusing_sysctl().unwrap_or(UserNamespaceError::Map { file, error })
        })
    };
    write("setgroups", "deny".to_owned())?;
    write("uid_map", format!("{user} {user} 1\n"))?;
    write("gid_map", format!("{group} {group} 1\n"))
}
