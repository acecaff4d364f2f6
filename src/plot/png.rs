//! Pixels: an SVG drawn with the two fonts that are part of the program, so that no fonts of the system are needed and the
//! same run gives the same bytes. The fonts are `DejaVu` Sans with Latin, Greek and Cyrillic letters (`fonts/LICENSE.txt`).

use std::sync::Arc;

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree, fontdb};

use super::error::PlotError;

const REGULAR: &[u8] = include_bytes!("fonts/DejaVuSans-subset.ttf");
const BOLD: &[u8] = include_bytes!("fonts/DejaVuSans-Bold-subset.ttf");
/// Pixels for each unit of the SVG, for pictures that are not very large.
const SCALE: f32 = 2.0;
/// Most pixels on a side of a picture drawn at [`SCALE`].
const MAX_SCALED: f32 = 16_000.0;

/// The SVG as a PNG, two pixels for each of its units (one for very large ones).
///
/// # Errors
/// If it is no SVG or larger than memory allows.
pub fn png(svg: &str) -> Result<Vec<u8>, PlotError> {
    let mut fonts = fontdb::Database::new();
    fonts.load_font_data(REGULAR.to_vec());
    fonts.load_font_data(BOLD.to_vec());
    fonts.set_sans_serif_family("DejaVu Sans");
    let options = Options { fontdb: Arc::new(fonts), font_family: "DejaVu Sans".to_owned(), ..Options::default() };
    let raster = |why: String| PlotError::Raster(why);
    let tree = Tree::from_str(svg, &options).map_err(|error| raster(error.to_string()))?;
    let size = tree.size();
    let scale = if size.width().max(size.height()) * SCALE <= MAX_SCALED { SCALE } else { 1.0 };
    let size = size.to_int_size().scale_by(scale).ok_or_else(|| raster("it has no size".to_owned()))?;
    let mut pixels = Pixmap::new(size.width(), size.height())
        .ok_or_else(|| raster(format!("{} × {} pixels are too many", size.width(), size.height())))?;
    resvg::render(&tree, Transform::from_scale(scale, scale), &mut pixels.as_mut());
    pixels.encode_png().map_err(|error| raster(error.to_string()))
}
