//! How often the interval of a median holds it where a cell was repeated until that interval was narrow enough. Stopping at a lucky
//! moment costs coverage, and this says how much.

use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;
use rayon::prelude::*;
use sweep::settings::Precision;
use sweep::stats::{median_interval, reached};

use super::{NOISE, Noise, number, rounded};

/// Figures around so many nanoseconds.
const CENTRE: f64 = 10_000_000.0;
/// Draws from which the true median of a noise is taken.
const DRAWS: usize = 400_001;

/// How a cell ended.
#[derive(Clone, Copy)]
struct Stopped {
    repeats: u32,
    /// Whether its interval was narrow enough.
    enough: bool,
    /// Whether its interval holds the true median.
    holds: bool,
}

/// Repeats a cell as a run does.
fn stopped(rng: &mut ChaCha8Rng, noise: &Noise, precision: &Precision, max: u32, truth: u64) -> Stopped {
    let mut figures: Vec<u64> = Vec::new();
    let mut look = precision.min;
    loop {
        let look_at = look.min(max);
        while figures.len() < look_at as usize {
            figures.push(rounded(CENTRE * (noise.factor)(rng, 0.5, 0.0)));
        }
        let enough = reached("completion", &figures, precision).enough;
        if enough || look_at == max {
            let interval = median_interval(&figures, precision.confidence.share());
            let holds = interval.is_some_and(|interval| interval.low <= truth && truth <= interval.high);
            return Stopped { repeats: look_at, enough, holds };
        }
        look = precision.next_look(look);
    }
}

/// Prints the table.
pub(super) fn table(cells: u64) {
    println!("\n{cells} cells a row, repeated from 6 to 50 times at 95 % confidence; shares in percent\n");
    println!(
        "| noise of a repeat | precision | precise enough | repeats, in the mean | interval holds the median | where precise enough |"
    );
    println!("| --- | ---: | ---: | ---: | ---: | ---: |");
    for noise in NOISE.iter().take(6) {
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        let mut draws: Vec<u64> = (0..DRAWS).map(|_| rounded(CENTRE * (noise.factor)(&mut rng, 0.5, 0.0))).collect();
        draws.sort_unstable();
        let truth = draws[DRAWS / 2];
        for share in ["1%", "2%", "5%", "10%"] {
            let text = |text: &str| text.parse().expect("a share");
            let precision = Precision { min: 6, share: text(share), confidence: text("95%") };
            let ended: Vec<Stopped> = (0..cells)
                .into_par_iter()
                .map(|seed| stopped(&mut ChaCha8Rng::seed_from_u64(seed), noise, &precision, 50, truth))
                .collect();
            let percent = |of: &dyn Fn(&&Stopped) -> bool, among: &dyn Fn(&&Stopped) -> bool| {
                let all = ended.iter().filter(among).count() as u64;
                let some = ended.iter().filter(among).filter(of).count() as u64;
                if all * 50 < cells { "–".to_owned() } else { format!("{:.1}", 100.0 * number(some) / number(all)) }
            };
            println!(
                "| {} | {share} | {:.1} | {:.1} | {} | {} |",
                noise.name,
                100.0 * number(ended.iter().filter(|ended| ended.enough).count() as u64) / number(cells),
                number(ended.iter().map(|ended| u64::from(ended.repeats)).sum()) / number(cells),
                percent(&|ended| ended.holds, &|_| true),
                percent(&|ended| ended.holds, &|ended| ended.enough),
            );
        }
    }
}
