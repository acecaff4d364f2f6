use super::{Judgement, Overall, Verdict};
use crate::gate::again::Round;
use crate::gate::baseline::tests::of_completions;
use crate::gate::baseline::{Baseline, BaselineCell};
use crate::gate::cells::Matching;
use crate::gate::environment::Aspect;
use crate::gate::error::GateError;
use crate::gate::metric::Metric;
use crate::gate::rules::Rules;
use crate::measurement::Outcome;
use crate::settings::Clock;

/// So many repeats around a completion, from 1 % below it to 1 % above, in an order without a trend.
fn around(centre: u64, count: u64) -> Vec<u64> {
    (0..count).map(|i| centre - centre / 100 + centre / 50 * ((i * 7 + 3) % count) / count + i).collect()
}

fn judge(before: &Baseline, after: &Baseline) -> Judgement {
    Judgement::new(before, after, &Rules::default()).expect("judged")
}

/// What a round would measure: for each of its cells as many figures as it asks for, made from the cell's place and that number.
fn measured(before: &Baseline, round: &Round, figures: impl Fn(usize, u64) -> Vec<u64>) -> Baseline {
    let cells =
        before.cells.iter().enumerate().filter(|(_, cell)| round.cells.contains(&cell.cell)).map(|(place, cell)| {
            let figures = figures(place, round.repeats as u64).into_iter().map(Some).collect();
            BaselineCell { figures: [(Metric::Completion.field().to_owned(), figures)].into(), ..cell.clone() }
        });
    Baseline { cells: cells.collect(), ..before.clone() }
}

/// Runs again what is suspected until all is told, and gives the rounds that took: how many cells, how many of them controls, and how many
/// times each.
fn run_again(
    judged: &mut Judgement,
    before: &Baseline,
    figures: impl Fn(usize, u64) -> Vec<u64>,
) -> Vec<(usize, usize, usize)> {
    let mut rounds = Vec::new();
    while let Some(round) = judged.round() {
        rounds.push((round.cells.len(), round.controls.len(), round.repeats));
        judged.confirm(before, &round, &measured(before, &round, &figures));
    }
    rounds
}

fn real(cells: &[Vec<u64>]) -> Baseline {
    of_completions(Clock::Real, cells)
}

#[test]
fn a_cell_of_whose_figure_the_baseline_knows_nothing_is_never_a_pass() {
    let cells: Vec<Vec<u64>> = (1..=3).map(|cell| around(cell * 1_000_000, 12)).collect();
    let after = real(&cells);
    // Kept by other figures, damaged by hand, or of repeats that have none.
    for figures in [None, Some(vec![]), Some(vec![None; 12])] {
        let mut before = real(&cells);
        match &figures {
            None => drop(before.cells[0].figures.remove(Metric::Completion.field())),
            Some(figures) => drop(before.cells[0].figures.insert(Metric::Completion.field().into(), figures.clone())),
        }
        let judged = judge(&before, &after);
        assert_eq!((judged.overall(), judged.cells[0].verdict), (Overall::NotJudged, Verdict::New), "{figures:?}");
        assert!(judged.cells[0].notes[0].contains("has no such figure"), "{:?}", judged.cells[0].notes);
        // The other way round something was lost.
        let judged = judge(&after, &before);
        assert_eq!((judged.overall(), judged.cells[0].verdict), (Overall::Regression, Verdict::Regressed));
        assert_eq!(judged.cells[0].notes[0], "was measured, is measured, without this figure");
    }
}

// C45
#[test]
fn a_real_regression_among_forty_cells_is_found_and_is_the_only_one() {
    let cells: Vec<Vec<u64>> = (1..=40).map(|cell| around(cell * 1_000_000, 8)).collect();
    let mut slower = cells.clone();
    slower[7] = around(8_800_000, 8);
    let judged = judge(&real(&cells), &real(&slower));
    assert_eq!(judged.overall(), Overall::Regression);
    assert_eq!((judged.count(Verdict::Regressed), judged.count(Verdict::Unchanged)), (1, 39));
    assert_eq!(judged.cells[7].verdict, Verdict::Regressed);
    assert_eq!(judged.suspects(), [judged.cells[7].cell.as_str()]);
    let reverse = judge(&real(&slower), &real(&cells));
    assert_eq!((reverse.overall(), reverse.cells[7].verdict), (Overall::Passed, Verdict::Improved));
}

#[test]
fn too_few_repeats_never_pass() {
    // Six against six fully separated reach p = 0.0022, and 0.002 is wanted: no pass, and no regression.
    let rules = Rules { alpha: 0.002, ..Rules::default() };
    let (fast, slow) = (real(&[around(1_000_000, 6)]), real(&[around(2_000_000, 6)]));
    let judged = Judgement::new(&fast, &slow, &rules).expect("judged");
    assert_eq!((judged.overall(), judged.cells[0].verdict), (Overall::NotJudged, Verdict::Underpowered));
    assert!(
        judged.cells[0].notes[0].contains("6 repeats against 6 can reach p = 0.0022"),
        "{:?}",
        judged.cells[0].notes
    );
    assert!(judged.cells[0].notes[0].contains("7 of each would do"), "{:?}", judged.cells[0].notes);
    let level = Rules { alpha: 0.0022, ..Rules::default() };
    assert_eq!(Judgement::new(&fast, &slow, &level).expect("judged").overall(), Overall::Regression);
    // The same figures on both sides are underpowered too: they might differ and would not show it.
    assert_eq!(Judgement::new(&fast, &fast, &rules).expect("judged").overall(), Overall::NotJudged);
}

#[test]
fn figures_without_any_variation_need_no_test() {
    let constant = real(&[vec![1_000_000; 2]]);
    assert_eq!(judge(&constant, &constant).overall(), Overall::Passed);
    let other = real(&[vec![2_000_000; 2]]);
    assert_eq!(judge(&constant, &other).cells[0].verdict, Verdict::Underpowered);
}

// C45: one noisy cell among many.
#[test]
fn a_change_within_the_noise_or_below_the_floor_passes() {
    // +3.3 % with an interval across 0.
    let noisy: Vec<u64> = vec![900_000, 950_000, 1_000_000, 1_050_000, 1_100_000, 1_150_000, 980_000, 1_020_000];
    let shifted: Vec<u64> = noisy.iter().map(|figure| figure * 1033 / 1000).collect();
    let judged = judge(&real(std::slice::from_ref(&noisy)), &real(&[shifted]));
    let interval = judged.cells[0].ratio.expect("a ratio").interval.expect("an interval");
    assert!(interval.low < 1.0 && interval.high.expect("an end") > 1.0);
    assert_eq!(judged.overall(), Overall::Passed);
    // Significant and +50 %, and a few microseconds.
    let judged = judge(&real(&[around(10_000, 8)]), &real(&[around(15_000, 8)]));
    assert!(judged.cells[0].adjusted_p.expect("a p") < 0.001);
    assert_eq!(judged.cells[0].verdict, Verdict::Unchanged);
    // Large, and within what the repeats vary by: said, and passed.
    let wide: Vec<u64> = (0..8).map(|i| 1_000_000 + ((i * 3) % 8) * 500_000).collect();
    let wider: Vec<u64> = wide.iter().map(|figure| figure + 400_000).collect();
    let judged = judge(&real(&[wide]), &real(&[wider]));
    assert_eq!(judged.cells[0].verdict, Verdict::Unchanged);
    assert!(judged.cells[0].notes.iter().any(|note| note.contains("within what the repeats vary by")));
}

#[test]
fn throughput_down_is_a_regression() {
    let (fast, slow) = (real(&[around(1_000_000, 8)]), real(&[around(2_000_000, 8)]));
    let rules = Rules { metric: Some(Metric::Goodput), floor: Some(0.into()), ..Rules::default() };
    let judged = Judgement::new(&fast, &slow, &rules).expect("judged");
    assert_eq!(judged.cells[0].verdict, Verdict::Regressed, "half the goodput");
    assert_eq!(Judgement::new(&slow, &fast, &rules).expect("judged").cells[0].verdict, Verdict::Improved);
}

#[test]
fn in_virtual_time_the_share_alone_decides_with_one_repeat() {
    let of = |completion| of_completions(Clock::Virtual, &[vec![completion]]);
    let rules = Rules { max_regression: 0.0005, ..Rules::default() };
    let verdict = |after| Judgement::new(&of(1_000_000), &of(after), &rules).expect("judged").cells[0].verdict;
    assert_eq!(verdict(1_001_000), Verdict::Regressed, "one part in a thousand");
    assert_eq!(verdict(999_000), Verdict::Improved);
    assert_eq!((verdict(1_000_000), verdict(1_000_400)), (Verdict::Unchanged, Verdict::Unchanged));
    let judged = judge(&of(1_000_000), &of(1_200_000));
    assert_eq!((judged.overall(), judged.tests, judged.suspects().len()), (Overall::Regression, 0, 0));
    assert_eq!(judge(&of(0), &of(0)).overall(), Overall::Passed);
    assert_eq!(judge(&of(0), &of(9)).cells[0].ratio.expect("a ratio").medians, None, "no NaN");
    assert_eq!(judge(&of(0), &of(9)).overall(), Overall::Regression);
}

#[test]
fn a_cell_that_is_no_longer_measured_is_a_regression() {
    let before = real(&[around(1_000_000, 8), around(1_000_000, 8)]);
    let mut after = before.clone();
    after.cells[0].outcome = Outcome::TimedOut;
    after.cells[0].reason = Some("no echo".into());
    after.cells[0].figures.clear();
    let judged = judge(&before, &after);
    assert_eq!((judged.overall(), judged.cells[0].verdict), (Overall::Regression, Verdict::Regressed));
    assert_eq!(judged.cells[0].notes, ["was measured, is timed-out: no echo"]);
    assert_eq!(judge(&after, &before).cells[0].verdict, Verdict::Improved);
    assert_eq!(
        (judge(&after, &after).overall(), judge(&after, &after).cells[0].verdict),
        (Overall::Passed, Verdict::WithoutFigures)
    );
    after.cells[0].outcome = Outcome::Skipped;
    let judged = judge(&before, &after);
    assert_eq!((judged.overall(), judged.cells[0].verdict), (Overall::NotJudged, Verdict::Missing));
}

#[test]
fn missing_and_new_cells_are_named_and_refused_unless_allowed() {
    let both = real(&[around(1_000_000, 8), around(2_000_000, 8)]);
    let one = real(&[around(1_000_000, 8)]);
    for (before, after, verdict) in [(&both, &one, Verdict::Missing), (&one, &both, Verdict::New)] {
        let judged = judge(before, after);
        assert_eq!((judged.overall(), judged.count(verdict)), (Overall::NotJudged, 1));
        let rules = Rules { allow: [Aspect::Cells].into(), ..Rules::default() };
        assert_eq!(Judgement::new(before, after, &rules).expect("judged").overall(), Overall::Passed);
    }
    let mut other = both.clone();
    other.cells.iter_mut().for_each(|cell| cell.cell.push('x'));
    let judged = judge(&both, &other);
    assert_eq!(
        (judged.overall(), judged.count(Verdict::Missing), judged.count(Verdict::New)),
        (Overall::NotJudged, 2, 2)
    );
    let rules = Rules { matching: Matching::Axes, ..Rules::default() };
    assert_eq!(Judgement::new(&both, &other, &rules).expect("judged").overall(), Overall::Passed);
    // Nothing in common is no pass, whatever is allowed.
    let mut elsewhere = other;
    elsewhere.cells.iter_mut().for_each(|cell| cell.axes.0.clear());
    let rules = Rules { allow: [Aspect::Cells].into(), ..Rules::default() };
    assert_eq!(
        Judgement::new(&Baseline { cells: Vec::new(), ..both.clone() }, &both, &rules).expect("judged").overall(),
        Overall::NotJudged
    );
}

#[test]
fn a_changed_kernel_or_a_restless_machine_withholds_every_verdict() {
    let before = real(&[around(1_000_000, 8), around(1_000_000, 8)]);
    let mut after = real(&[around(2_000_000, 8), around(1_000_000, 8)]);
    after.cells.iter_mut().for_each(|cell| cell.kernel = Some("7.0".into()));
    let judged = judge(&before, &after);
    assert_eq!(
        (judged.overall(), judged.count(Verdict::Withheld), judged.suspects().len()),
        (Overall::NotJudged, 2, 0)
    );
    assert!(judged.withheld[0].ends_with("(--allow kernel)"), "{:?}", judged.withheld);
    let rules = Rules { allow: [Aspect::Kernel].into(), ..Rules::default() };
    let judged = Judgement::new(&before, &after, &rules).expect("judged");
    assert_eq!((judged.overall(), judged.differences.len()), (Overall::Regression, 1), "stated beside the figures");

    let restless: Vec<u64> = (0..20).map(|i| if i < 10 { 1_000_000 + i } else { 1_300_000 + i }).collect();
    let judged = judge(&before, &real(&[restless, around(1_000_000, 8)]));
    assert_eq!((judged.overall(), judged.count(Verdict::Withheld)), (Overall::NotJudged, 2));
    assert!(judged.withheld[0].contains("the machine changed while it measured"), "{:?}", judged.withheld);
}

#[test]
fn a_regression_stands_only_if_running_it_again_shows_it() {
    let before = real(&[around(1_000_000, 8), around(1_000_000, 8)]);
    let after = real(&[around(1_200_000, 8), around(1_200_000, 8)]);
    let mut judged = judge(&before, &after);
    assert_eq!(judged.suspects().len(), 2);
    let rounds = run_again(&mut judged, &before, |place, count| around([1_000_000, 1_210_000][place], count));
    assert_eq!(rounds, [(2, 0, 20)], "two cells, and no others that could be controls");
    assert_eq!(
        judged.cells.iter().map(|cell| cell.verdict).collect::<Vec<_>>(),
        [Verdict::NotConfirmed, Verdict::Regressed]
    );
    assert_eq!(judged.overall(), Overall::Regression);
    let mut judged = judge(&before, &after);
    run_again(&mut judged, &before, |_, count| around(1_000_000, count));
    assert_eq!((judged.overall(), judged.count(Verdict::NotConfirmed)), (Overall::Passed, 2));
    let mut judged = judge(&before, &after);
    judged.unconfirmed("--no-confirm");
    assert_eq!(
        (judged.overall(), judged.cells[0].notes.last().map(String::as_str), judged.round()),
        (Overall::Regression, Some("not run again: --no-confirm"), None)
    );
}

#[test]
fn fewer_repeats_of_the_run_do_against_a_baseline_of_many() {
    let before: Vec<Vec<u64>> = (1..=40).map(|cell| around(cell * 1_000_000, 20)).collect();
    let mut after: Vec<Vec<u64>> = (1..=40).map(|cell| around(cell * 1_000_000, 5)).collect();
    assert_eq!(judge(&real(&before), &real(&after)).overall(), Overall::Passed);
    after[3] = around(4_400_000, 5);
    assert_eq!(judge(&real(&before), &real(&after)).overall(), Overall::Regression);
    let five: Vec<Vec<u64>> = (1..=40).map(|cell| around(cell * 1_000_000, 5)).collect();
    let judged = judge(&real(&five), &real(&after));
    assert_eq!((judged.overall(), judged.count(Verdict::Underpowered)), (Overall::NotJudged, 40));
    assert!(
        judged.cells[0].notes[0].contains("8 of each would do, or 13 of the baseline"),
        "{:?}",
        judged.cells[0].notes
    );
}

#[test]
fn a_metric_that_one_side_lacks_is_an_error_that_names_it() {
    let before = real(&[around(1_000_000, 8)]);
    let rules = Rules { metric: Some(Metric::ChunkP99), ..Rules::default() };
    let error = Judgement::new(&before, &before, &rules).expect_err("no such figures");
    assert!(matches!(error, GateError::NoFigures { metric: Metric::ChunkP99, .. }), "{error}");
    assert!(error.to_string().contains("the baseline and the run has none"));
}

/// So many repeats from 8 % below a centre to 8 % above it, in an order without a trend.
fn noisy(centre: u64, count: u64) -> Vec<u64> {
    (0..count).map(|i| centre - centre / 100 * 8 + centre / 100 * 16 * ((i * 7 + 3) % count) / count + i).collect()
}

#[test]
fn what_may_be_worse_is_run_again_and_that_decides() {
    let before: Vec<Vec<u64>> = (1..=40).map(|cell| noisy(cell * 1_000_000, 20)).collect();
    let mut after: Vec<Vec<u64>> = (1..=40).map(|cell| noisy(cell * 1_000_000, 5)).collect();
    after[7] = noisy(8_800_000, 5);
    let (before, after) = (real(&before), real(&after));
    let mut judged = judge(&before, &after);
    let slow = &judged.cells[7];
    assert!(slow.adjusted_p.expect("a p") > 0.01 && slow.verdict == Verdict::Unchanged, "not significant: {slow:?}");
    assert_eq!(judged.suspects(), [slow.cell.as_str()]);
    let mut unconfirmed = judged.clone();
    unconfirmed.unconfirmed("--no-confirm");
    assert_eq!(unconfirmed.overall(), Overall::Passed, "by the run alone it cannot be told");

    let mut steady = judged.clone();
    let slow =
        |place: usize, count: u64| noisy((place as u64 + 1) * if place == 7 { 1_100_000 } else { 1_000_000 }, count);
    let rounds = run_again(&mut judged, &before, slow);
    assert_eq!(rounds, [(1, 0, 20), (17, 16, 20)], "alone, and beside cells that nobody suspects");
    assert_eq!((judged.overall(), judged.count(Verdict::Regressed)), (Overall::Regression, 1));
    assert!(judged.cells[7].notes.iter().any(|note| note.ends_with("(40 repeats)")), "{:?}", judged.cells[7].notes);
    assert!(judged.cells[7].again.is_some());
    let rounds = run_again(&mut steady, &before, |place, count| noisy((place as u64 + 1) * 1_000_000, count));
    assert_eq!((steady.overall(), steady.count(Verdict::Unchanged), rounds.len()), (Overall::Passed, 40, 1));
}

/// Forty cells, 40 repeats of each in the baseline and five in the run, the eighth of them that many percent of what it was.
fn one_of_forty(percent: u64) -> (Baseline, Judgement) {
    let of = |count: u64, percent: u64| {
        let cell = |cell: u64| noisy(cell * if cell == 8 { percent * 10_000 } else { 1_000_000 }, count);
        real(&(1..=40).map(cell).collect::<Vec<_>>())
    };
    let before = of(40, 100);
    let judged = judge(&before, &of(5, percent));
    (before, judged)
}

#[test]
fn what_a_look_does_not_tell_is_run_again_once_more() {
    let (before, mut judged) = one_of_forty(105);
    // 4 % in the first sixty repeats, which is less than is allowed and more than chance, and 7 % in the others.
    let slow = |place: usize, count: u64| {
        let percent = if count == 100 { 107 } else { 104 };
        noisy((place as u64 + 1) * 10_000 * if place == 7 { percent } else { 100 }, count)
    };
    let rounds = run_again(&mut judged, &before, slow);
    assert_eq!(rounds, [(1, 0, 20), (1, 0, 40), (1, 0, 100), (17, 16, 20)]);
    assert_eq!((judged.overall(), judged.count(Verdict::Regressed)), (Overall::Regression, 1));
    assert_eq!(judged.cells[7].again.as_ref().expect("run again").figures.len(), 180, "all that was run again counts");
    // What stays open to the end is not confirmed.
    let (before, mut judged) = one_of_forty(104);
    let slow =
        |place: usize, count: u64| noisy((place as u64 + 1) * if place == 7 { 1_030_000 } else { 1_000_000 }, count);
    let rounds = run_again(&mut judged, &before, slow);
    assert_eq!(rounds, [(1, 0, 20), (1, 0, 40), (1, 0, 100)]);
    assert_eq!((judged.overall(), judged.count(Verdict::Unchanged)), (Overall::Passed, 40));
}

#[test]
fn a_plain_regression_takes_few_repeats() {
    let (before, mut judged) = one_of_forty(1000);
    let slow =
        |place: usize, count: u64| noisy((place as u64 + 1) * if place == 7 { 10_000_000 } else { 1_000_000 }, count);
    let rounds = run_again(&mut judged, &before, slow);
    assert_eq!(rounds, [(1, 0, 5), (17, 16, 20)]);
    assert_eq!(judged.overall(), Overall::Regression);
}

#[test]
fn where_cells_that_nobody_suspects_are_slower_too_it_is_the_machine() {
    let slower = |percent: u64, slow: u64| {
        move |place: usize, count: u64| {
            noisy((place as u64 + 1) * 10_000 * if place == 7 { slow } else { percent }, count)
        }
    };
    let (before, mut judged) = one_of_forty(120);
    run_again(&mut judged, &before, slower(112, 120));
    assert_eq!((judged.overall(), judged.cells[7].verdict), (Overall::NotJudged, Verdict::Withheld));
    assert!(
        judged.withheld[0].starts_with("the machine is not as it was for the baseline: run again, of 16 cells 16"),
        "{:?}",
        judged.withheld
    );
    // Several times as slow as these is none of the machine's doing.
    let (before, mut judged) = one_of_forty(200);
    run_again(&mut judged, &before, slower(112, 200));
    assert_eq!((judged.overall(), judged.cells[7].verdict), (Overall::Regression, Verdict::Regressed));
    // Slower when it was run alone, and as before beside the others.
    let (before, mut judged) = one_of_forty(120);
    let first = judged.round().expect("a suspect");
    judged.confirm(&before, &first, &measured(&before, &first, slower(100, 120)));
    run_again(&mut judged, &before, slower(100, 100));
    assert_eq!((judged.overall(), judged.cells[7].verdict), (Overall::Passed, Verdict::NotConfirmed));
}

#[test]
fn where_time_is_up_what_is_not_told_is_not_confirmed() {
    let (before, mut judged) = one_of_forty(105);
    let first = judged.round().expect("a suspect");
    let slow =
        |place: usize, count: u64| noisy((place as u64 + 1) * if place == 7 { 1_055_000 } else { 1_000_000 }, count);
    judged.confirm(&before, &first, &measured(&before, &first, slow));
    judged.unconfirmed("that took longer than --confirm-time 5m");
    assert_eq!(
        (judged.overall(), judged.cells[7].verdict, judged.round()),
        (Overall::Passed, Verdict::Unchanged, None)
    );
    assert!(
        judged.cells[7].notes.iter().any(|note| note.contains("20 repeats, and no more")),
        "{:?}",
        judged.cells[7].notes
    );
}

#[test]
fn too_few_repeats_that_look_worse_are_run_again_too() {
    let (before, after) = (real(&vec![around(1_000_000, 8); 40]), real(&vec![around(1_000_000, 4); 40]));
    let mut slower = after.clone();
    slower.cells[3] = real(&vec![around(1_200_000, 4); 40]).cells[3].clone();
    let mut judged = judge(&before, &slower);
    assert_eq!((judged.count(Verdict::Underpowered), judged.suspects().len()), (40, 1));
    run_again(&mut judged, &before, |place, count| around(if place == 3 { 1_200_000 } else { 1_000_000 }, count));
    assert_eq!((judged.overall(), judged.count(Verdict::Regressed)), (Overall::Regression, 1));
}

#[test]
fn a_run_that_is_slower_as_a_whole_is_told_from_a_cell_that_is() {
    let run = |percent: u64, slow: u64| {
        let of = |cell: u64| around(cell * 10_000 * if cell == 9 { slow } else { percent }, 20);
        real(&(1..=40).map(of).collect::<Vec<_>>())
    };
    let before = run(100, 100);
    // By more than a cell may, and nothing differs: it is the machine.
    for percent in [107, 93] {
        let judged = judge(&before, &run(percent, percent));
        assert_eq!((judged.overall(), judged.count(Verdict::Withheld)), (Overall::NotJudged, 40));
        assert!(judged.withheld[0].contains("the run as a whole is not as the baseline"), "{:?}", judged.withheld);
    }
    // Another kernel may be the cause.
    let mut other = run(107, 107);
    other.cells.iter_mut().for_each(|cell| cell.kernel = Some("7.0".into()));
    let rules = Rules { allow: [Aspect::Kernel].into(), ..Rules::default() };
    let judged = Judgement::new(&before, &other, &rules).expect("judged");
    assert_eq!((judged.overall(), judged.count(Verdict::Regressed)), (Overall::Regression, 40));
    // By less: a cell has regressed where it is worse than the others, too.
    let judged = judge(&before, &run(104, 107));
    assert_eq!((judged.overall(), judged.cells[8].verdict), (Overall::Passed, Verdict::Unchanged));
    assert!(judged.cells[8].notes[0].starts_with("no worse than the run as a whole"), "{:?}", judged.cells[8].notes);
    let judged = judge(&before, &run(104, 115));
    assert_eq!((judged.overall(), judged.cells[8].verdict), (Overall::Regression, Verdict::Regressed));
    assert_eq!(judge(&before, &run(100, 107)).shift, None, "one cell is no whole run");
}

#[test]
fn a_restless_cell_moves_by_as_much_as_its_repeats_vary() {
    // From 20 % below to 20 % above: 10 % around the median.
    let wide = |centre: u64| (0..40).map(|i| centre - centre / 5 + centre / 100 * ((i * 7 + 3) % 40) + i).collect();
    let verdict = |centre: u64| {
        let judged = judge(&real(&[wide(1_000_000)]), &real(&[wide(centre)]));
        assert!(judged.cells[0].adjusted_p.expect("a p") < 0.01, "{:?}", judged.cells[0]);
        (judged.cells[0].verdict, judged.cells[0].notes.first().cloned().unwrap_or_default())
    };
    let (unchanged, why) = verdict(1_200_000);
    assert_eq!(unchanged, Verdict::Unchanged);
    assert!(why.starts_with("its repeats vary by 10 % around the median"), "{why}");
    assert_eq!(verdict(1_400_000).0, Verdict::Regressed);
}
