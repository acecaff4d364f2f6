//! Which direction of a figure is an improvement.

use super::choice;

choice! {
    /// Which direction of a figure is an improvement.
    Better {
        /// Less is better, as of times.
        #[default] Lower = "lower",
        /// More is better, as of rates.
        Higher = "higher",
    }
}
