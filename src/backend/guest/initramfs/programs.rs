//! Where a guest looks programs up by their name.

/// `PATH` in a guest.
pub(in crate::backend::guest) const GUEST_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// Where a program gets a link that is on this machine's `PATH` but not on the guest's.
pub(super) const GUEST_OWN: &str = "usr/local/bin";
