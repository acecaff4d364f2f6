//! Keys of the link, of sysctls and of placement in a sweep file: forms that are the same, and errors as a person reads them.

use sweep::plan::Plan;
use sweep::spec::{Overrides, Sweep};

use crate::named;

fn plan(text: &str) -> Plan {
    let sweep = Sweep::parse("sweep.toml", &named(text), &Overrides::default());
    Plan::new(&sweep.expect("a sweep"))
}

/// What is wrong with a file.
fn errors(text: &str) -> String {
    crate::errors(&named(text))
}

#[test]
fn every_way_to_write_a_sysctl_is_the_same_cell() {
    let quoted = plan("[sysctl]\n\"net.ipv4.tcp_rmem\" = \"4096 131072  6291456\"\n\"net.ipv4.tcp_sack\" = 0\n");
    for text in [
        "[sysctl]\nnet.ipv4.tcp_rmem = \"4096 131072 6291456\"\nnet.ipv4.tcp_sack = \"0\"\n",
        "[sysctl.net.ipv4]\ntcp_rmem = \"4096\\t131072\\t6291456\"\ntcp_sack = 0\n",
        "[sysctl]\n\"net.ipv4.tcp_sack\" = 0\n[axes]\n\"sysctl.net.ipv4.tcp_rmem\" = [\"4096 131072 6291456\"]\n",
        "[axes]\nsysctl.net.ipv4.tcp_rmem = [\"4096 131072 6291456\"]\nsysctl.net.ipv4.tcp_sack = [0]\n",
    ] {
        assert_eq!(plan(text).cells[0].id, quoted.cells[0].id, "{text}");
    }
    let axis = plan("[axes]\n\"sysctl.net.ipv4.tcp_adv_win_scale\" = [-2, 1, \"default\"]\n");
    let values: Vec<String> = axis.cells.iter().map(|cell| cell.axes.to_string()).collect();
    assert_eq!(values[0], "sysctl.net.ipv4.tcp_adv_win_scale=-2");
    assert!(axis.cells[2].settings.sysctls.is_empty());
}

#[test]
fn a_key_for_one_direction_wins_over_one_for_both() {
    let plan = plan("[link.client]\ndelay = \"5ms\"\n[axes]\n\"link.delay\" = [\"1ms\", \"2ms\"]\n");
    for (cell, server) in plan.cells.iter().zip([1_000_000, 2_000_000]) {
        assert_eq!((cell.settings.link.client.delay.0, cell.settings.link.server.delay.0), (5_000_000, server));
    }
}

#[test]
fn sysctls_out_of_the_network_are_refused() {
    insta::assert_snapshot!(errors(
        r#"[sysctl]
"kernel.panic" = 1
"net.ipv4./../../kernel.panic" = 1
"net...kernel" = 1
"net.ipv4.tcp_rmem" = [4096]
"net.ipv4.tcp_sack" = true
[axes]
"sysctl.vm.swappiness" = [1]
"sysctl.net.ipv4.tcp_wmem" = ["1 2 3", "1  2 3"]
"#
    ));
}

#[test]
fn values_of_the_link_that_are_wrong() {
    insta::assert_snapshot!(errors(
        r#"[link]
rate = 1000
loss = 1
delay = 5
jitter = "1ms"
qdisc = "fq_kodel"
duplicate = "101%"
[link.server]
rate = "1Gbps"
overhead = 9999
limt = 4
[placement]
client_cpu = 5000
policy = "fiffo"
"#
    ));
}

#[test]
fn what_cannot_go_together_on_a_link() {
    insta::assert_snapshot!(errors(
        r#"[link]
loss_p = "1%"
limit_bytes = 10000
[link.server]
jitter = "2ms"
[axes]
"link.server.delay" = ["1ms", "5ms"]
"link.topology" = ["veth", "loopback"]
"#
    ));
}
