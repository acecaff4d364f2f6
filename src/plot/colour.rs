//! Colours: one map for figures, one for ratios, and the two themes.
//!
//! The map for figures is viridis (Smith and van der Walt, in the public domain) from light to dark: even steps look even,
//! readers who cannot tell red from green can read it, and it is still in order when printed in grey.

/// A colour, red first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rgb(pub(crate) u8, pub(crate) u8, pub(crate) u8);

const fn rgb(hex: u32) -> Rgb {
    let [_, red, green, blue] = hex.to_be_bytes();
    Rgb(red, green, blue)
}

/// Viridis at 33 even places, from light to dark.
const FIGURES: [u32; 33] = [
    0xfd_e725, 0xec_e51b, 0xd8_e219, 0xc2_df23, 0xad_dc30, 0x98_d83e, 0x84_d44b, 0x70_cf57, 0x5e_c962, 0x4e_c36b,
    0x3f_bc73, 0x32_b67a, 0x28_ae80, 0x22_a785, 0x1f_a088, 0x1f_988b, 0x21_918c, 0x23_898e, 0x26_828e, 0x29_7a8e,
    0x2c_728e, 0x2f_6b8e, 0x33_638d, 0x37_5b8d, 0x3b_528b, 0x3e_4989, 0x42_4086, 0x45_3781, 0x47_2d7b, 0x48_2374,
    0x48_186a, 0x47_0d60, 0x44_0154,
];
/// From better (blue) over unchanged (white) to worse (orange): a pair that every kind of colour blindness can tell apart.
const RATIOS: [u32; 9] =
    [0x0b_3c6f, 0x2a_6aa8, 0x6b_a3cf, 0xb9_d4e8, 0xf5_f5f4, 0xf4_cfa6, 0xe2_9a55, 0xb8_651b, 0x7a_3b05];
/// Lines that differ in lightness too (Okabe and Ito), for light and dark backgrounds.
const LINES: [[u32; 6]; 2] = [
    [0x00_72b2, 0xc2_4f00, 0x00_7d5c, 0xa8_4a84, 0x1b_1f24, 0x8a_6d00],
    [0x56_b4e9, 0xe6_9f00, 0x29_c79a, 0xe0_8fc0, 0xf0_f6fc, 0xf0_e442],
];

/// Which table colours are taken from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Map {
    /// Light is little, dark is much.
    Figures,
    /// Blue is better, white is the same, orange is worse.
    Ratios,
}

impl Map {
    /// The even places that colours are interpolated between.
    pub(crate) fn stops(self) -> Vec<Rgb> {
        let table: &[u32] = match self {
            Self::Figures => &FIGURES,
            Self::Ratios => &RATIOS,
        };
        table.iter().map(|&hex| rgb(hex)).collect()
    }

    /// The colour at that place from 0 to 1.
    pub(crate) fn at(self, place: f64) -> Rgb {
        let stops = self.stops();
        let last = stops.len() - 1;
        #[expect(clippy::cast_precision_loss, reason = "33 stops")]
        let scaled = place.clamp(0.0, 1.0) * last as f64;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and 32")]
        let below = (scaled.floor() as usize).min(last);
        let (Some(&a), Some(&b)) = (stops.get(below), stops.get((below + 1).min(last))) else { return Rgb(0, 0, 0) };
        mix(a, b, scaled.fract())
    }
}

/// A colour between two others.
pub(super) fn mix(a: Rgb, b: Rgb, part: f64) -> Rgb {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between two bytes")]
    let channel = |a: u8, b: u8| (f64::from(a) + (f64::from(b) - f64::from(a)) * part).round() as u8;
    Rgb(channel(a.0, b.0), channel(a.1, b.1), channel(a.2, b.2))
}

impl Rgb {
    /// Relative luminance (WCAG 2.2).
    fn luminance(self) -> f64 {
        let linear = |channel: u8| {
            let part = f64::from(channel) / 255.0;
            if part <= 0.040_45 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * linear(self.0) + 0.7152 * linear(self.1) + 0.0722 * linear(self.2)
    }

    /// Black or white, whichever is easier to read on this.
    pub(super) fn ink(self) -> Rgb {
        if contrast(self, BLACK) >= contrast(self, WHITE) { BLACK } else { WHITE }
    }

    /// As CSS writes it.
    pub(crate) fn css(self) -> String {
        format!("#{:02x}{:02x}{:02x}", self.0, self.1, self.2)
    }
}

const BLACK: Rgb = rgb(0);
const WHITE: Rgb = rgb(0xff_ffff);

/// Contrast ratio (WCAG 2.2), from 1 to 21.
fn contrast(a: Rgb, b: Rgb) -> f64 {
    let (a, b) = (a.luminance(), b.luminance());
    (a.max(b) + 0.05) / (a.min(b) + 0.05)
}

/// Colours of everything but figures.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Palette {
    pub(super) ground: Rgb,
    pub(super) text: Rgb,
    pub(super) muted: Rgb,
    pub(super) rule: Rgb,
    pub(super) hatch_ground: Rgb,
    pub(super) hatch: Rgb,
    pub(crate) lines: [Rgb; 6],
}

impl Palette {
    pub(crate) fn of(theme: super::Theme) -> Self {
        match theme {
            super::Theme::Light => Self {
                ground: WHITE,
                text: rgb(0x1b_1f24),
                muted: rgb(0x57_606a),
                rule: rgb(0xd8_dee4),
                hatch_ground: rgb(0xf3_f4f6),
                hatch: rgb(0xa8_b0b9),
                lines: LINES[0].map(rgb),
            },
            super::Theme::Dark => Self {
                ground: rgb(0x0d_1117),
                text: rgb(0xf0_f6fc),
                muted: rgb(0xa3_acb6),
                rule: rgb(0x30_363d),
                hatch_ground: rgb(0x1c_2128),
                hatch: rgb(0x56_5f69),
                lines: LINES[1].map(rgb),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Map, Palette, contrast};
    use crate::plot::Theme;

    fn luminances(map: Map) -> Vec<f64> {
        (0..=200).map(|step| map.at(f64::from(step) / 200.0).luminance()).collect()
    }

    #[test]
    fn figures_get_darker_all_the_way() {
        assert!(luminances(Map::Figures).is_sorted_by(|a, b| a > b));
    }

    #[test]
    fn ratios_get_lighter_up_to_the_middle_and_darker_after_it() {
        let (below, above) = (luminances(Map::Ratios)[..=100].to_vec(), luminances(Map::Ratios)[100..].to_vec());
        assert!(below.is_sorted_by(|a, b| a < b) && above.is_sorted_by(|a, b| a > b));
    }

    #[test]
    fn figures_can_be_read_on_every_colour() {
        for map in [Map::Figures, Map::Ratios] {
            for step in 0..=200 {
                let colour = map.at(f64::from(step) / 200.0);
                assert!(contrast(colour, colour.ink()) >= 4.5, "{colour:?}");
            }
        }
    }

    #[test]
    fn texts_and_lines_can_be_read_in_both_themes() {
        for theme in [Theme::Light, Theme::Dark] {
            let palette = Palette::of(theme);
            for text in [palette.text, palette.muted].into_iter().chain(palette.lines) {
                assert!(contrast(text, palette.ground) >= 4.5, "{text:?}");
            }
            assert!(contrast(palette.text, palette.hatch_ground) >= 7.0);
        }
    }
}
