//! What the command line changes, and how two sweeps differ.

use sweep::spec::{Overrides, Sweep};

use crate::{assignments, errors_with, named, sweep_with};

#[test]
fn overrides_of_zipped_axes() {
    let text = "[[zip]]\nrcvbuf = [1024, 2048, 4096]\nsndbuf = [1, 1, 2]\n[axes]\nnodelay = [false, true]\n[[include]]\nrcvbuf = 8192\nsndbuf = 3\n";
    let axes = |set: &[&str], filter: &[&str]| {
        let overrides = Overrides { set: assignments(set), filter: assignments(filter), ..Overrides::default() };
        let sweep = sweep_with(text, &overrides);
        let axes: Vec<_> = sweep.axes.iter().map(|axis| axis.shown().join(",")).collect();
        format!("{} + {}, {} cells", axes.join(" "), sweep.include.len(), sweep.cell_count())
    };
    assert_eq!(axes(&[], &[]), "1 KiB,2 KiB,4 KiB 1 B,1 B,2 B off,on + 1, 7 cells");
    assert_eq!(axes(&["sndbuf=7"], &[]), "1 KiB,2 KiB,4 KiB 7 B,7 B,7 B off,on + 1, 7 cells");
    assert_eq!(axes(&["sndbuf=7,8,9"], &[]), "1 KiB,2 KiB,4 KiB 7 B,8 B,9 B off,on + 1, 7 cells");
    assert_eq!(axes(&[], &["sndbuf=1"]), "1 KiB,2 KiB 1 B,1 B off,on + 0, 4 cells", "whole rows");
    assert_eq!(axes(&[], &["rcvbuf=4KiB,8KiB"]), "4 KiB 2 B off,on + 1, 3 cells", "added cells too");
    // The added cell had the first value of nodelay in the file.
    assert_eq!(axes(&[], &["nodelay=true"]), "1 KiB,2 KiB,4 KiB 1 B,1 B,2 B on + 0, 3 cells");
    let wrong = Overrides {
        set: assignments(&["rcvbuf=1,2", "sndbuf=1,x,2"]),
        filter: assignments(&["rcvbuf=16KiB"]),
        ..Overrides::default()
    };
    insta::assert_snapshot!("zip_overridden_wrongly", errors_with(&named(text), &wrong));
    let same = Overrides { set: assignments(&["rcvbuf=64KiB"]), ..Overrides::default() };
    insta::assert_snapshot!("zip_overridden_to_the_same_rows", errors_with(&named(text), &same));
}

#[test]
fn overrides_that_are_wrong() {
    let text = named("[workload]\nkind = \"echo\"\n[axes]\nrcvbuf = [1024, \"64KiB\", \"default\"]\n");
    let overrides = Overrides {
        repeat: Some("0".into()),
        precision: None,
        set: assignments(&[
            "sndbuf=64K,1024",
            "chunk_count=1,1",
            "mtu=1500",
            "run.timeout=1s,2s",
            "run.seed=x",
            "nodelay=on",
            "link.mtu=1400",
            "link.mtu=1500",
        ]),
        filter: assignments(&["rcvbuf=64KiB,2048", "rcvbuf=4Ki", "rcvbuff=1024", "sndbof=1"]),
    };
    insta::assert_snapshot!(errors_with(&text, &overrides));
}

#[test]
fn an_override_that_clashes_with_the_file() {
    let text = named("[workload]\nduration = \"1s\"\nkind = \"stream\"\n");
    let overrides = Overrides { set: assignments(&["workload.bytes=1MiB"]), ..Overrides::default() };
    insta::assert_snapshot!(errors_with(&text, &overrides));
}

#[test]
fn overrides_change_the_sweep() {
    let text = "[run]\nrepeat = 3\n[socket]\nsndbuf = 1024\n[axes]\nrcvbuf = [1024, \"64KiB\", \"default\"]\n";
    let overrides = Overrides {
        repeat: Some("7".into()),
        precision: None,
        set: assignments(&["sndbuf=2KiB,default", "link.mtu=1400", "run.timeout=5s", "kernel.image=6.12"]),
        filter: assignments(&["rcvbuf=1KiB", "rcvbuf=default"]),
    };
    let sweep = sweep_with(text, &overrides);
    assert_eq!((sweep.run.repeat, sweep.run.timeout.exact().as_str()), (7, "5s"));
    let fixed: Vec<_> = sweep.fixed.iter().map(|(path, value)| format!("{path}={value}")).collect();
    assert_eq!(fixed, ["link.mtu=1400", "kernel.image=6.12"]);
    let axes: Vec<_> = sweep.axes.iter().map(|axis| format!("{}={}", axis.name, axis.shown().join(","))).collect();
    assert_eq!(axes, ["rcvbuf=1 KiB,default", "sndbuf=2 KiB,default"]);

    let one = Overrides { set: assignments(&["rcvbuf=8KiB"]), ..Overrides::default() };
    assert_eq!(sweep_with(text, &one).axes[0].shown(), ["8 KiB"], "an axis remains one");
}

#[test]
fn differences_are_told_in_words() {
    let text = "[run]\ntimeout = \"60s\"\n[workload]\nchunk_count = 3\n[axes]\nrcvbuf = [1024]\nsndbuf = [1, 2]\n";
    let was = sweep_with(text, &Overrides::default());
    assert_eq!(was.differences(&was), Vec::<String>::new());
    let json = serde_json::to_string(&was).expect("serialises");
    insta::assert_snapshot!("sweep_in_a_manifest", json);
    assert_eq!(serde_json::from_str::<Sweep>(&json).expect("parses"), was);
    let unknown = json.replace("workload.chunk_count", "workload.chunks");
    assert!(serde_json::from_str::<Sweep>(&unknown).is_err_and(|error| error.to_string().contains("workload.chunks")));

    let overrides = Overrides {
        repeat: Some("9".into()),
        precision: None,
        set: assignments(&["run.timeout=180s", "rcvbuf=4KiB,1024", "sndbuf=2,1", "chunk_count=4,5", "link.mtu=1500"]),
        filter: Vec::new(),
    };
    insta::assert_snapshot!("differences", was.differences(&sweep_with(text, &overrides)).join("\n"));
}
