//! Programs in a sweep file: what is understood, what is wrong and where, and what decides a cell.

use miette::{GraphicalReportHandler, GraphicalTheme};
use sweep::plan::Plan;
use sweep::settings::{Exec, Ready, Side, Source, Stands, Stop};
use sweep::spec::{Overrides, Sweep};

fn parse(text: &str) -> Result<Sweep, String> {
    Sweep::parse("sweep.toml", text, &Overrides::default()).map_err(|errors| {
        let mut text = String::new();
        let handler = GraphicalReportHandler::new_themed(GraphicalTheme::unicode_nocolor());
        handler.with_width(100).with_links(false).render_report(&mut text, &errors).expect("renders");
        text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
    })
}

fn errors(text: &str) -> String {
    parse(text).expect_err("the sweep is wrong")
}

/// The programs of each cell.
fn programs(text: &str) -> Vec<Exec> {
    let sweep = parse(text).unwrap_or_else(|errors| panic!("{errors}"));
    let cells = Plan::new(&sweep).cells;
    cells.into_iter().map(|cell| *cell.settings.exec.expect("programs")).collect()
}

/// Ids of all cells.
fn ids(text: &str) -> Vec<String> {
    let sweep = parse(text).unwrap_or_else(|errors| panic!("{errors}"));
    Plan::new(&sweep).cells.iter().map(|cell| cell.id.to_string()).collect()
}

/// A sweep with these two commands.
fn with(server: &str, client: &str, more: &str) -> String {
    format!(
        "name = \"t\"\n[workload]\nkind = \"exec\"\n[workload.server]\ncommand = {server}\n[workload.client]\ncommand = {client}\n{more}\n"
    )
}

#[test]
fn all_that_can_be_said_of_programs() {
    let text = r#"
name = "t"
[workload]
kind = "exec"
protocol = "sctp"
files = ["data", "/etc/hosts"]
[workload.server]
command = ["serve", "{var.size}", "{rcvbuf}"]
env = { A = "{{{size}}}" }
ready = { protocol = "tcp", port = 99 }
ready_timeout = "3s"
stop = "SIGINT"
grace = "100ms"
success = [0, 1]
package = "server-pkg"
[workload.client]
command = ["ask", ["-n", "{nodelay}"], "{server_addr}"]
[[workload.metric]]
name = "rate"
is = "goodput"
unit = "MB/s"
from = "server"
regex = '(\d+)'
[var]
size = 1.5
[axes]
nodelay = [true, "default"]
rcvbuf = [1024]
"#;
    let [one, other] = &programs(text)[..] else { panic!("two cells") };
    assert_eq!(one.server.command, ["serve", "1.5", "1024"]);
    assert_eq!(one.server.env["A"], "{{1.5}}", "still a template");
    assert_eq!(one.client.command, ["ask", "-n", "true", "{server_addr}"]);
    assert_eq!(other.client.command, ["ask", "{server_addr}"]);
    assert_eq!(one.server.ready, Ready::Port { protocol: Some(sweep::settings::Protocol::Tcp), port: Some(99) });
    assert_eq!((one.server.stop, &one.server.success[..], one.server.grace.0), (Stop::Int, &[0, 1][..], 100_000_000));
    assert_eq!(one.server.package.as_deref(), Some("server-pkg"));
    assert!(one.server.uses.contains("socket.server.rcvbuf") && one.client.uses.contains("socket.client.nodelay"));
    assert_eq!(one.files, ["data", "/etc/hosts"]);
    let [metric] = &one.metrics[..] else { panic!("one metric") };
    assert_eq!(
        (metric.is, metric.from, &metric.source),
        (Stands::Goodput, Side::Server, &Source::Regex(r"(\d+)".into()))
    );
}

#[test]
fn a_manifest_keeps_the_programs() {
    let sweep =
        parse(&with("[\"a\", \"{port}\"]", "[\"b\", [\"-w\", \"{rcvbuf}\"]]", "[axes]\nrcvbuf = [1, \"default\"]"))
            .expect("a sweep");
    let json = serde_json::to_string(&sweep).expect("serialises");
    let read: Sweep = serde_json::from_str(&json).expect("reads");
    assert_eq!(read, sweep);
    assert_eq!(Plan::new(&read), Plan::new(&sweep));
    assert!(sweep.differences(&read).is_empty());
    let other =
        parse(&with("[\"a\", \"{port}\"]", "[\"b\", [\"-W\", \"{rcvbuf}\"]]", "[axes]\nrcvbuf = [1, \"default\"]"))
            .expect("a sweep");
    let [difference] = &sweep.differences(&other)[..] else { panic!("one difference") };
    assert!(difference.starts_with("workload.client: was ") && difference.contains("-W"), "{difference}");
}

#[test]
fn what_is_run_decides_a_cell_and_where_the_file_lies_does_not() {
    let base = with("[\"a\"]", "[\"b\"]", "");
    let id = |text: &str| ids(text).remove(0);
    for other in [
        with("[\"A\"]", "[\"b\"]", ""),
        with("[\"a\"]", "[\"b\", \"\"]", ""),
        with("[\"a\"]\nready = { after = \"1s\" }", "[\"b\"]", ""),
        with("[\"a\"]\nstop = \"itself\"", "[\"b\"]", ""),
        with("[\"a\"]", "[\"b\"]\nenv = { X = \"1\" }", ""),
        with("[\"a\"]", "[\"b\"]\nsuccess = [1]", ""),
        with(
            "[\"a\"]",
            "[\"b\"]",
            "[[workload.metric]]\nname = \"c\"\nis = \"completion\"\nunit = \"s\"\njson = \"/c\"",
        ),
    ] {
        assert_ne!(id(&other), id(&base), "{other}");
    }
    for same in [
        with("[\"a\"]\npackage = \"p\"\nready = \"port\"", "[\"b\"]", ""),
        with("[\"a\"]", "[\"b\"]", "[[workload.metric]]\nname = \"c\"\nbetter = \"lower\"\njson = \"/c\""),
    ] {
        assert_eq!(id(&same), id(&base), "{same}");
    }
    let elsewhere = Sweep::parse("/elsewhere/sweep.toml", &base, &Overrides::default()).expect("a sweep");
    let plan = Plan::new(&elsewhere);
    assert_eq!(plan.cells[0].id.to_string(), id(&base));
    assert_eq!(plan.cells[0].settings.exec.as_ref().expect("programs").dir, "/elsewhere");
}

#[test]
fn placeholders_that_stand_for_nothing_are_shown_in_their_place() {
    insta::assert_snapshot!(errors(&with(
        r#"["serve", "-p{prot}", "{rcvbuff}", "{window}", "é{server_adr}", "{{ok}} {oops"]"#,
        r#"["ask", ["-w", "{var.size}"], "\t{nothing}", "}", "{preset}"]"#,
        "[var]\nflag = true"
    )));
}

#[test]
fn axes_that_no_program_can_obey_are_errors() {
    insta::assert_snapshot!(errors(&with(
        r#"["serve", "{port}"]"#,
        r#"["ask", "{sndbuf}"]"#,
        r#"
[socket]
sndbuf = 4096
[socket.server]
nodelay = true
[var]
unused = 1
port = 2
[axes]
rcvbuf = [1024, 2048]
chunk_count = [1, 2]
"link.mtu" = [1500]
"#
    )));
}

#[test]
fn default_is_no_value_outside_of_a_group() {
    insta::assert_snapshot!(errors(&with(
        r#"["serve", "{link.delay}"]"#,
        r#"["ask", "-w", "{rcvbuf}", ["-n", "{sndbuf}"]]"#,
        "[axes]\nrcvbuf = [1024, \"default\"]\nsndbuf = [1024, \"default\"]"
    )));
}

#[test]
fn tables_of_programs_that_are_wrong() {
    insta::assert_snapshot!(errors(
        r#"
name = "t"
[workload]
kind = "exec"
files = "data"
[workload.server]
command = "iperf3 -s"
redy = "port"
ready = { line = "(" }
stop = "SIGTREM"
grace = 5
success = [256]
[workload.client]
command = ["ask", 5201, ["x", ["y"]], 1.5]
stop = "SIGINT"
env = { A = 1 }
"#
    ));
}

#[test]
fn metrics_that_are_wrong() {
    insta::assert_snapshot!(errors(&with(
        r#"["a"]"#,
        r#"["b"]"#,
        r#"
[[workload.metric]]
name = "one"
regex = 'no group'
better = "lower"
[[workload.metric]]
name = "two"
better = "lower"
[[workload.metric]]
name = "three"
json = "end"
better = "less"
[[workload.metric]]
name = "goodput"
json = "/a"
[[workload.metric]]
name = "five"
is = "completion"
unit = "Mbit/s"
json = "/a"
better = "higher"
[[workload.metric]]
regex = '(x)'
better = "lower"
[[workload.metric]]
name = "same"
better = "lower"
json = "/a"
[[workload.metric]]
name = "same"
better = "lower"
json = "/b"
"#
    )));
}

#[test]
fn programs_belong_to_exec_and_exec_has_two() {
    insta::assert_snapshot!("without_exec", errors("name = \"t\"\n[workload.client]\ncommand = [\"a\"]\n"));
    insta::assert_snapshot!("a_value_without_exec", errors("name = \"t\"\n[axes]\n\"var.a\" = [1, 2]\n"));
    insta::assert_snapshot!(
        "only_one",
        errors("name = \"t\"\n[workload]\nkind = \"exec\"\n[workload.client]\ncommand = [\"a\"]\n")
    );
    insta::assert_snapshot!(
        "with_a_preset",
        errors(&with("[\"a\"]", "[\"b\"]", "").replacen("name", "preset = \"erlang-otp-27\"\nname", 1))
    );
}
