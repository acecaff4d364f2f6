//! Facts about the host, from `/proc`, `/sys` and `/etc` alone: no process is run, and what is not there is left out.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// The host that a run was started on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Host {
    /// Its name.
    pub hostname: Option<String>,
    /// The distribution, as `PRETTY_NAME` in os-release.
    pub os: Option<String>,
    /// Kernel, as `uname -r` says.
    pub kernel_release: Option<String>,
    /// Kernel, as `uname -v` says.
    pub kernel_version: Option<String>,
    /// Architecture that this program was built for: `x86_64`.
    pub arch: String,
    /// Model of the first processor.
    pub cpu_model: Option<String>,
    /// Logical processors that this process may use.
    pub cores: Option<u64>,
    /// Memory in all.
    pub memory_bytes: Option<u64>,
    /// Whether it is itself a virtual machine.
    pub virtualised: Option<bool>,
    /// Maker and model of the machine, real or virtual, as the firmware says.
    pub platform: Option<String>,
}

impl Host {
    /// This host.
    pub fn gather() -> Self {
        let cores = std::thread::available_parallelism().ok().map(|cores| cores.get() as u64);
        Self { cores, ..Self::under(Path::new("/")) }
    }

    /// The facts that files under `root` tell.
    fn under(root: &Path) -> Self {
        let proc = |name: &str| text(&root.join("proc").join(name));
        let dmi = |name: &str| text(&root.join("sys/class/dmi/id").join(name));
        let cpuinfo = proc("cpuinfo");
        let cpu = |name: &str| cpuinfo.as_deref().and_then(|text| field(text, ':', name));
        let platform: Vec<_> = [dmi("sys_vendor"), dmi("product_name")].into_iter().flatten().collect();
        Self {
            hostname: proc("sys/kernel/hostname"),
            os: ["etc/os-release", "usr/lib/os-release"]
                .iter()
                .find_map(|path| text(&root.join(path)))
                .and_then(|text| field(&text, '=', "PRETTY_NAME"))
                .map(|name| name.trim_matches(['"', '\'']).to_owned()),
            kernel_release: proc("sys/kernel/osrelease"),
            kernel_version: proc("sys/kernel/version"),
            arch: std::env::consts::ARCH.to_owned(),
            // Arm names no model there, but the device tree does.
            cpu_model: cpu("model name")
                .or_else(|| cpu("Model"))
                .or_else(|| proc("device-tree/model").map(|model| model.trim_end_matches('\0').to_owned())),
            cores: None,
            memory_bytes: proc("meminfo").and_then(|text| field(&text, ':', "MemTotal")).and_then(|total| {
                total.strip_suffix("kB")?.trim().parse::<u64>().ok().and_then(|kib| kib.checked_mul(1024))
            }),
            virtualised: if text(&root.join("sys/hypervisor/type")).is_some() {
                Some(true)
            } else {
                cpu("flags").map(|flags| flags.split_whitespace().any(|flag| flag == "hypervisor"))
            },
            platform: (!platform.is_empty()).then(|| platform.join(" ")),
        }
    }
}

/// Kernel parameters that decide about buffers, windows and timers.
const SYSCTLS: [&str; 26] = [
    "net.core.rmem_max",
    "net.core.rmem_default",
    "net.core.wmem_max",
    "net.core.wmem_default",
    "net.core.optmem_max",
    "net.core.default_qdisc",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
    "net.ipv4.tcp_mem",
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_timestamps",
    "net.ipv4.tcp_window_scaling",
    "net.ipv4.tcp_sack",
    "net.ipv4.tcp_moderate_rcvbuf",
    "net.ipv4.tcp_adv_win_scale",
    "net.ipv4.tcp_notsent_lowat",
    "net.sctp.sctp_rmem",
    "net.sctp.sctp_wmem",
    "net.sctp.sctp_mem",
    "net.sctp.rto_min",
    "net.sctp.rto_initial",
    "net.sctp.rto_max",
    "net.sctp.sack_timeout",
    "net.sctp.max_burst",
    "net.sctp.rcvbuf_policy",
    "net.sctp.sndbuf_policy",
];

/// The values of the kernel parameters that decide about buffers, by their dotted name. Those that this kernel does not
/// have (of SCTP before its module is loaded) are absent.
pub fn sysctls() -> BTreeMap<String, String> {
    sysctls_under(Path::new("/"))
}

fn sysctls_under(root: &Path) -> BTreeMap<String, String> {
    let base = root.join("proc/sys");
    SYSCTLS
        .iter()
        .filter_map(|name| {
            let value = text(&base.join(name.replace('.', "/")))?;
            Some(((*name).to_owned(), value.split_whitespace().collect::<Vec<_>>().join(" ")))
        })
        .collect()
}

/// What a small file says, or `None` if it is not there or empty.
fn text(path: &Path) -> Option<String> {
    let bytes = fs::read(path).ok()?;
    let text = String::from_utf8_lossy(&bytes).trim().to_owned();
    (!text.is_empty()).then_some(text)
}

/// The first value of that name among lines `name<separator>value`.
fn field(text: &str, separator: char, name: &str) -> Option<String> {
    text.lines()
        .filter_map(|line| line.split_once(separator))
        .find(|(key, _)| key.trim() == name)
        .map(|(_, value)| value.trim().to_owned())
        .filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::{Host, sysctls_under};

    fn file(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs::write(path, text).expect("written");
    }

    #[test]
    fn facts_are_found_where_linux_has_them() {
        let root = tempfile::tempdir().expect("a folder");
        let root = root.path();
        file(root, "proc/sys/kernel/hostname", "bench\n");
        file(root, "proc/sys/kernel/osrelease", "6.12.117+deb13-amd64\n");
        file(root, "etc/os-release", "NAME=x\nPRETTY_NAME=\"Debian GNU/Linux 13 (trixie)\"\n");
        file(root, "proc/cpuinfo", "processor\t: 0\nmodel name\t: A CPU @ 2 GHz\nflags\t\t: fpu hypervisor\n");
        file(root, "proc/meminfo", "MemTotal:       16384 kB\nMemFree: 1 kB\n");
        file(root, "sys/class/dmi/id/sys_vendor", "QEMU\n");
        let host = Host::under(root);
        assert_eq!(host.hostname.as_deref(), Some("bench"));
        assert_eq!(host.os.as_deref(), Some("Debian GNU/Linux 13 (trixie)"));
        assert_eq!(host.kernel_release.as_deref(), Some("6.12.117+deb13-amd64"));
        assert_eq!(host.cpu_model.as_deref(), Some("A CPU @ 2 GHz"));
        assert_eq!(host.memory_bytes, Some(16_777_216));
        assert_eq!((host.virtualised, host.platform.as_deref()), (Some(true), Some("QEMU")));
    }

    #[test]
    fn what_is_not_there_is_left_out() {
        let root = tempfile::tempdir().expect("a folder");
        let host = Host::under(root.path());
        assert_eq!(host, Host { arch: std::env::consts::ARCH.to_owned(), ..Host::default() });
        assert!(sysctls_under(root.path()).is_empty());
    }

    #[test]
    fn triples_are_joined_by_one_space() {
        let root = tempfile::tempdir().expect("a folder");
        file(root.path(), "proc/sys/net/ipv4/tcp_rmem", "4096\t131072\t6291456\n");
        let found = sysctls_under(root.path());
        assert_eq!(found.get("net.ipv4.tcp_rmem").map(String::as_str), Some("4096 131072 6291456"));
        assert_eq!(found.len(), 1);
    }
}
