//! An SVG as PNG bytes.

use std::sync::{Arc, OnceLock};

use resvg::usvg::fontdb;

/// The SVG could not be turned into a PNG.
#[derive(Clone, Debug, thiserror::Error)]
#[error("cannot rasterise the figure: {0}")]
pub struct RasterError(String);

/// The PNG of an SVG that this module drew, `scale` pixels per unit.
///
/// # Errors
/// [`RasterError`] if the text is no SVG or the picture is too large.
pub fn png(svg: &str, scale: f32) -> Result<Vec<u8>, RasterError> {
    use resvg::{tiny_skia, usvg};
    let options = usvg::Options {
        font_family: FONT_FAMILY.to_owned(),
        fontdb: fonts(),
        ..usvg::Options::default()
    };
    let tree = usvg::Tree::from_str(svg, &options).map_err(|e| RasterError(e.to_string()))?;
    let size = tree.size().to_int_size().scale_by(scale);
    let mut pixels = size
        .and_then(|s| tiny_skia::Pixmap::new(s.width(), s.height()))
        .ok_or_else(|| RasterError(format!("no picture of {:?} x {scale}", tree.size())))?;
    resvg::render(
        &tree,
        tiny_skia::Transform::from_scale(scale, scale),
        &mut pixels.as_mut(),
    );
    pixels.encode_png().map_err(|e| RasterError(e.to_string()))
}

/// The one bundled font, whatever is installed on the machine.
fn fonts() -> Arc<fontdb::Database> {
    static FONTS: OnceLock<Arc<fontdb::Database>> = OnceLock::new();
    let load = || {
        let mut fonts = fontdb::Database::new();
        fonts.load_font_data(epaint_default_fonts::UBUNTU_LIGHT.to_vec());
        fonts.set_sans_serif_family(FONT_FAMILY);
        Arc::new(fonts)
    };
    Arc::clone(FONTS.get_or_init(load))
}

const FONT_FAMILY: &str = "Ubuntu";
