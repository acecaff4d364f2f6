use super::{Agenda, rounds};
use crate::measurement::Outcome;
use crate::plan::{Plan, Run};
use crate::record::{More, MoreRepeats, Program, Record, example};
use crate::spec::{Overrides, Sweep};

const SWEEP: &str = r#"
name = "t"
[run]
warmup = 1
repeat = { min = 5, max = 20, precision = "2%", confidence = 0.95 }
[axes]
rcvbuf = [1024, 2048, 4096]
"#;

fn sweep(text: &str) -> (Sweep, Plan) {
    let sweep = Sweep::parse("t.toml", text, &Overrides::default()).expect("a sweep");
    let plan = Plan::new(&sweep);
    (sweep, plan)
}

/// The record of a run, with that completion.
fn record(plan: &Plan, run: Run, completion: u64) -> Record {
    Record { warmup: run.warmup, ..example(&plan.cells[run.cell].id.to_string(), run.repeat, completion) }
}

/// Runs what the agenda asks for until it asks for nothing more, and returns the looks: what was run, in its order.
fn work_off(agenda: &mut Agenda<'_>, plan: &Plan, figure: impl Fn(Run) -> u64) -> Vec<Vec<Run>> {
    let all: Vec<usize> = (0..plan.cells.len()).collect();
    let mut looks = Vec::new();
    loop {
        let runs = agenda.next(&all);
        if runs.is_empty() {
            return looks;
        }
        for &run in &runs {
            agenda.take(&record(plan, run, figure(run)));
        }
        looks.push(runs);
    }
}

/// The first cell never varies, the second by 1 %, the third without end.
fn restless(run: Run) -> u64 {
    let wave = u64::from(run.repeat % 2);
    [1_000_000, 1_000_000 + 10_000 * wave, 1_000_000 * (1 + wave)][run.cell]
}

fn counts(looks: &[Vec<Run>]) -> [usize; 3] {
    [0, 1, 2].map(|cell| looks.iter().flatten().filter(|run| run.cell == cell && !run.warmup).count())
}

#[test]
fn a_cell_stops_when_its_median_is_known_and_another_at_the_most() {
    let (sweep, plan) = sweep(SWEEP);
    let mut agenda = Agenda::new(&plan, &sweep, &[], &[]);
    assert_eq!((agenda.done(), agenda.total()), (0, 3 + 3 * 20));
    let looks = work_off(&mut agenda, &plan, restless);
    // Five repeats give no interval at 95 %, six do.
    assert_eq!(counts(&looks), [6, 6, 20]);
    assert_eq!((agenda.done(), agenda.total()), (35, 35));
    assert_eq!(looks[0].len(), 3 + 15, "warm-ups and five of each before the first look");
    // Whatever is run is in the order of the plan, which lays the repeats of a cell among those of the others.
    for look in &looks {
        let places: Vec<usize> =
            look.iter().map(|run| plan.runs.iter().position(|other| other == run).expect("planned")).collect();
        assert!(places.is_sorted(), "{places:?}");
    }
}

#[test]
fn a_run_that_is_taken_up_again_runs_what_it_would_have_run() {
    let (sweep, plan) = sweep(SWEEP);
    let whole = work_off(&mut Agenda::new(&plan, &sweep, &[], &[]), &plan, restless).concat();
    for cut in [0, 1, 10, 18, 19, 22, 30, whole.len()] {
        let records: Vec<Record> = whole[..cut].iter().map(|&run| record(&plan, run, restless(run))).collect();
        let rest = work_off(&mut Agenda::new(&plan, &sweep, &[], &records), &plan, restless).concat();
        assert_eq!(rest, whole[cut..], "cut at {cut}");
    }
}

#[test]
fn a_cell_without_figures_is_not_repeated_to_the_most() {
    let (sweep, plan) = sweep(SWEEP);
    let mut agenda = Agenda::new(&plan, &sweep, &[], &[]);
    let all: Vec<usize> = (0..plan.cells.len()).collect();
    for &run in &agenda.next(&all) {
        let mut refused = record(&plan, run, 1);
        (refused.measurement.outcome, refused.measurement.completion_ns) = (Outcome::Invalid, None);
        agenda.take(&refused);
    }
    assert_eq!(agenda.next(&all), []);
}

#[test]
fn a_lost_machine_is_asked_nothing_more() {
    let (sweep, plan) = sweep(SWEEP);
    let mut agenda = Agenda::new(&plan, &sweep, &[], &[]);
    agenda.give_up(&[0, 2]);
    assert!(agenda.next(&[0, 1, 2]).iter().all(|run| run.cell == 1));
}

#[test]
fn a_fixed_number_is_run_at_once() {
    let (sweep, plan) = sweep("name = \"t\"\n[run]\nrepeat = 4\n[axes]\nrcvbuf = [1024, 2048, 4096]\n");
    let looks = work_off(&mut Agenda::new(&plan, &sweep, &[], &[]), &plan, restless);
    assert_eq!(looks, std::slice::from_ref(&plan.runs));
}

#[test]
fn what_is_added_comes_on_top() {
    let (sweep, plan) = sweep("name = \"t\"\n[run]\nrepeat = 4\n[axes]\nrcvbuf = [1024, 2048, 4096]\n");
    let records: Vec<Record> = plan.runs.iter().map(|&run| record(&plan, run, restless(run))).collect();
    let more = |from: u32, to: u32, cells: &[usize], precision: Option<&str>| More {
        started: jiff::Timestamp::UNIX_EPOCH,
        command: Vec::new(),
        program: Program::this(),
        allowed: Vec::new(),
        precision: precision.map(|share| {
            let confidence = "95%".parse().expect("a share");
            crate::settings::Precision { min: 6, share: share.parse().expect("a share"), confidence }
        }),
        cells: cells.iter().map(|&cell| (plan.cells[cell].id.to_string(), MoreRepeats { from, to })).collect(),
    };
    let topped_up = [more(4, 7, &[0, 2], None), more(7, 30, &[2], Some("2%"))];
    assert_eq!(rounds(&sweep.run, &topped_up), 30);
    let longer = Plan::of_rounds(&sweep, 30);
    assert_eq!(longer.runs[..plan.runs.len()], plan.runs, "the first rounds stay as they were");
    let mut agenda = Agenda::new(&longer, &sweep, &topped_up[..1], &records);
    assert_eq!(counts(&work_off(&mut agenda, &longer, restless)), [3, 0, 3]);
    let mut agenda = Agenda::new(&longer, &sweep, &topped_up, &records);
    assert_eq!(counts(&work_off(&mut agenda, &longer, restless)), [3, 0, 26]);
    let steady = |_: Run| 1_000_000;
    let records: Vec<Record> = plan.runs.iter().map(|&run| record(&plan, run, steady(run))).collect();
    let mut agenda = Agenda::new(&longer, &sweep, &[more(4, 30, &[2], Some("2%"))], &records);
    assert_eq!(counts(&work_off(&mut agenda, &longer, steady)), [0, 0, 2], "until there is an interval");
}
