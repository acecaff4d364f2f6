//! How often cells are repeated.

use sweep::spec::{Overrides, Sweep};

use crate::{errors, named, sweep_with};

#[test]
fn repeats_that_are_wrong() {
    for (fields, wrong) in [
        ("min = 50, max = 5, precision = \"2%\"", &["at least 50 repeats and at most 5 are none"][..]),
        ("min = 2, max = 5, precision = \"2%\"", &["at 95% confidence", "it takes 6"]),
        ("max = 7, precision = \"2%\", confidence = 0.99", &["at 99% confidence", "it takes 8"]),
        ("min = 5", &["`repeat` lacks `max`", "`repeat` lacks `precision`"]),
        (
            "min = 0, max = \"many\", precision = 2, confidence = 95",
            &["`min` of `repeat`", "`max` of `repeat`", "`precision` of `repeat`", "`confidence` of `repeat`"],
        ),
        (
            "max = 50, precision = \"0%\", confidence = 0.2",
            &["only identical repeats", "no confidence between 0.5 and"],
        ),
        ("max = 50, precison = \"2%\"", &["unknown key `precison`", "did you mean `precision`?"]),
        ("max = 20000, precision = \"2%\"", &["MAX_REPEATS"]),
    ] {
        // Lines are broken where the terminal ends.
        let told = errors(&named(&format!("[run]\nrepeat = {{ {fields} }}\n")));
        let told = told.replace('│', " ").split_whitespace().collect::<Vec<_>>().join(" ");
        for wrong in wrong {
            assert!(told.contains(wrong), "{fields}: {told}");
        }
        assert!(told.contains("[sweep.toml:3:"), "its place: {told}");
    }
}

#[test]
fn repeats_as_a_table() {
    let precision = |text: &str| {
        let run = sweep_with(text, &Overrides::default()).run;
        let precision = run.precision.expect("a precision");
        (precision.min, run.repeat, precision.to_string())
    };
    let usual = (6, 50, "±2% at 95% confidence".to_owned());
    assert_eq!(precision("[run]\nrepeat = { max = 50, precision = \"2%\" }\n"), usual);
    assert_eq!(precision("[run.repeat]\nmax = 50\nmin = 6\nprecision = \"2%\"\nconfidence = \"95%\"\n"), usual);
    let issue = "[run]\nrepeat = { min = 5, max = 50, precision = \"2%\", confidence = 0.95 }\n";
    assert_eq!(precision(issue), (5, 50, usual.2));
    let was = sweep_with(issue, &Overrides::default());
    let stored = serde_json::to_string(&was).expect("serialises");
    assert_eq!(serde_json::from_str::<Sweep>(&stored).expect("parses"), was);
    let now = sweep_with("[run]\nrepeat = 50\n", &Overrides::default());
    assert_eq!(
        was.differences(&now),
        ["precision of run.repeat: was from 5 repeats on until ±2% at 95% confidence, is not asked for"]
    );
}
