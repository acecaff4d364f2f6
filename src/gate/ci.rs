//! What continuous integration reads: a summary in Markdown, annotations of GitHub Actions, and `JUnit`'s XML.

use maud::html;

use super::judge::{Judgement, Overall, Verdict};
use super::judged::Judged;
use super::table::{conclusion, moved, words};
use super::words::{MISSING, change, probability};

/// Rows of the summary's table. GitHub takes 1 MiB of summary, and nobody reads that much.
const MAX_ROWS: usize = 200;

/// A summary for the page of a job.
pub fn markdown(judgement: &Judgement) -> String {
    let mark = match judgement.overall() {
        Overall::Passed => "✅",
        Overall::Regression => "❌",
        Overall::NotJudged => "⚠️",
    };
    let mut lines =
        vec![format!("### {mark} sweep gate: {}, {}", escaped(&judgement.sweep), judgement.metric), String::new()];
    for line in conclusion(judgement).lines() {
        lines.extend([escaped(line), String::new()]);
    }
    let list = |lines: &mut Vec<String>, title: &str, items: &mut dyn Iterator<Item = &String>| {
        let items: Vec<String> = items.map(|item| format!("- {}", escaped(item))).collect();
        if !items.is_empty() {
            lines.extend([title.to_owned(), String::new()]);
            lines.extend(items);
            lines.push(String::new());
        }
    };
    list(&mut lines, "Nothing is judged:", &mut judgement.withheld.iter());
    list(
        &mut lines,
        "Run again as a whole, since of what was measured before nothing could be judged:",
        &mut judgement.before_that.iter(),
    );
    let told = |cell: &&Judged| !matches!(cell.verdict, Verdict::Unchanged | Verdict::WithoutFigures);
    let rows: Vec<&Judged> = judgement.cells.iter().filter(told).collect();
    if !rows.is_empty() {
        lines.push("| cell | baseline | run | change | p (Holm) | verdict |".to_owned());
        lines.push("| --- | ---: | ---: | ---: | ---: | --- |".to_owned());
        for cell in rows.iter().take(MAX_ROWS) {
            let [before, after, changed] = figures(judgement, cell);
            let p = cell.adjusted_p.map_or_else(|| MISSING.to_owned(), probability);
            let axes = escaped(&cell.axes.to_string());
            let verdict = escaped(&format!("{}{}", words(cell.verdict).to_lowercase(), tail(&cell.notes)));
            lines.push(format!("| {axes} | {before} | {after} | {changed} | {p} | {verdict} |"));
        }
        lines.push(String::new());
        if rows.len() > MAX_ROWS {
            lines.extend([format!("and {} more", rows.len() - MAX_ROWS), String::new()]);
        }
    }
    if let Some(shift) = &judgement.shift {
        lines.extend([format!("The run as a whole: {}.", escaped(&moved(shift))), String::new()]);
    }
    let differences = &mut judgement.differences.iter().map(|difference| &difference.text);
    list(&mut lines, "What differs between the two:", differences);
    lines.join("\n")
}

/// Notes behind something else.
fn tail(notes: &[String]) -> String {
    if notes.is_empty() { String::new() } else { format!("; {}", notes.join("; ")) }
}

/// Annotations: an error for each cell that regressed or could not be judged, a notice for each that improved.
pub fn annotations(judgement: &Judgement) -> Vec<String> {
    let mut lines: Vec<String> =
        judgement.withheld.iter().map(|why| command("error", "sweep gate: not judged", why)).collect();
    for cell in &judgement.cells {
        let (kind, title) = match cell.verdict {
            Verdict::Regressed => ("error", "regression"),
            Verdict::Underpowered => ("error", "too few repeats"),
            Verdict::Missing | Verdict::New => ("warning", "cell on one side only"),
            Verdict::Improved => ("notice", "improvement"),
            Verdict::NotConfirmed => ("warning", "not confirmed"),
            Verdict::Unchanged | Verdict::WithoutFigures | Verdict::Withheld => continue,
        };
        lines.push(command(kind, &format!("sweep gate: {title}"), &sentence(judgement, cell)));
    }
    lines
}

/// A workflow command, with the characters escaped that would end it.
fn command(kind: &str, title: &str, message: &str) -> String {
    let data = |text: &str| text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A");
    let title = data(title).replace(':', "%3A").replace(',', "%2C");
    format!("::{kind} title={title}::{}", data(message))
}

/// What happened to a cell, in a line.
fn sentence(judgement: &Judgement, cell: &Judged) -> String {
    let [before, after, changed] = figures(judgement, cell);
    let notes = tail(&cell.notes);
    format!("{} of {} ({}): {before} to {after}, {changed}{notes}", judgement.metric, cell.axes, judgement.sweep)
}

/// Both medians and the change, or dashes.
fn figures(judgement: &Judgement, cell: &Judged) -> [String; 3] {
    let median = |side: &Option<super::cells::Side>| {
        side.as_ref()
            .and_then(|side| side.median)
            .map_or_else(|| MISSING.to_owned(), |median| judgement.metric.show(median))
    };
    let changed = cell.ratio.and_then(|ratio| ratio.medians).map_or_else(|| MISSING.to_owned(), change);
    [median(&cell.before), median(&cell.after), changed]
}

/// Text that Markdown takes as it is, also within a table.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\\' | '`' | '*' | '_' | '|' | '[' | ']' | '#' => safe.extend(['\\', character]),
            '<' => safe.push_str("&lt;"),
            '&' => safe.push_str("&amp;"),
            '\n' | '\r' => safe.push(' '),
            _ => safe.push(character),
        }
    }
    safe
}

/// `JUnit`'s XML: a test for each cell, and one for the comparison as a whole.
pub fn junit(judgement: &Judgement) -> String {
    let suite = format!("sweep gate: {}", judgement.sweep);
    let errors = |cell: &&Judged| matches!(cell.verdict, Verdict::Underpowered | Verdict::Missing | Verdict::New);
    let skipped = |cell: &&Judged| matches!(cell.verdict, Verdict::WithoutFigures | Verdict::Withheld);
    let count = |of: &dyn Fn(&&Judged) -> bool| judgement.cells.iter().filter(|cell| of(cell)).count();
    let refused = usize::from(!judgement.withheld.is_empty());
    let (tests, failures) = (judgement.cells.len() + 1, judgement.count(Verdict::Regressed));
    let (errors, skips) = (count(&errors) + refused, count(&skipped));
    let body = html! {
        testsuites name=(legal(&suite)) tests=(tests) failures=(failures) errors=(errors) skipped=(skips) {
            testsuite name=(legal(&suite)) tests=(tests) failures=(failures) errors=(errors) skipped=(skips) {
                testcase classname=(legal(&judgement.sweep)) name="both sides can be compared" {
                    @if refused > 0 { error message="not judged" { (legal(&judgement.withheld.join("\n"))) } }
                    @if !judgement.differences.is_empty() {
                        system-out { @for difference in &judgement.differences { (legal(&difference.text)) "\n" } }
                    }
                }
                @for cell in &judgement.cells {
                    testcase classname=(legal(&judgement.sweep)) name=(legal(&format!("{} {}", judgement.metric, cell.axes))) {
                        @match cell.verdict {
                            Verdict::Regressed => { failure message="regressed" { (legal(&sentence(judgement, cell))) } }
                            Verdict::Underpowered => { error message="too few repeats" { (legal(&sentence(judgement, cell))) } }
                            Verdict::Missing | Verdict::New => { error message="on one side only" { (legal(&sentence(judgement, cell))) } }
                            Verdict::WithoutFigures => { skipped message="without figures on both sides" {} }
                            Verdict::Withheld => { skipped message="withheld" {} }
                            Verdict::Unchanged | Verdict::Improved | Verdict::NotConfirmed => {
                                system-out { (legal(&sentence(judgement, cell))) }
                            }
                        }
                    }
                }
            }
        }
    };
    format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{}\n", body.into_string())
}

/// Text without the characters that XML 1.0 forbids.
fn legal(text: &str) -> String {
    text.chars()
        .filter(|&c| !c.is_control() || matches!(c, '\n' | '\t'))
        .filter(|c| !matches!(c, '\u{fffe}' | '\u{ffff}'))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{annotations, escaped, junit, markdown};
    use crate::gate::baseline::tests::of_completions;
    use crate::gate::judge::Judgement;
    use crate::gate::rules::Rules;
    use crate::settings::Clock;

    fn judged() -> Judgement {
        let before = of_completions(Clock::Virtual, &[vec![1_000_000], vec![1_000_000], vec![5], vec![7]]);
        let mut after = of_completions(Clock::Virtual, &[vec![2_000_000], vec![500_000], vec![5]]);
        after.sweep = "a|b <c> & \"d\"\u{1}".into();
        Judgement::new(&before, &after, &Rules::default()).expect("judged")
    }

    #[test]
    fn a_summary_holds_what_is_to_be_told_and_breaks_no_table() {
        let text = markdown(&judged());
        insta::assert_snapshot!(text);
        for row in text.lines().filter(|line| line.starts_with('|')) {
            assert_eq!(row.replace("\\|", "").matches('|').count(), 7, "{row}");
        }
        assert_eq!(escaped("a_b|c\n<"), "a\\_b\\|c &lt;");
    }

    #[test]
    fn annotations_are_one_line_each() {
        let lines = annotations(&judged());
        insta::assert_snapshot!(lines.join("\n"));
        assert!(lines.iter().all(|line| line.starts_with("::") && !line.contains('\n')));
    }

    #[test]
    fn the_xml_is_well_formed_and_counts_what_it_holds() {
        let text = junit(&judged());
        insta::assert_snapshot!(text);
        assert!(!text.contains('\u{1}') && text.contains("&lt;c&gt; &amp;"));
        assert_eq!(text.matches("<testcase ").count(), 5);
        assert_eq!((text.matches("<failure").count(), text.matches("<error").count()), (1, 1));
    }
}
