//! An SVG as PNG bytes, and the fonts for that.

use std::sync::Arc;

use png::{ColorType, Encoder, EncodingError, Filter};
use resvg::tiny_skia::{Color, Pixmap, Transform};
use resvg::usvg::{self, fontdb};

use super::svg::named_and_described;
use crate::figure::Style;

/// The SVG could not be turned into a PNG or PDF.
#[derive(Clone, Debug, thiserror::Error)]
pub enum RasterError {
    /// The drawing itself.
    #[error("cannot rasterise the figure: {0}")]
    Svg(String),
    /// The font of its letters.
    #[error(transparent)]
    Font(#[from] FontError),
}

/// There is no such font here.
#[derive(Clone, Debug, thiserror::Error)]
pub enum FontError {
    /// No font of the family, nor of its equals.
    #[error("no font {} on this machine", .0.iter().map(|f| format!("`{f}`")).collect::<Vec<_>>().join(" or "))]
    Missing(Vec<String>),
    /// A font that cannot be read or embedded.
    #[error("the font cannot be used: {0}")]
    Unusable(String),
}

/// The PNG of an SVG that this module drew for the style, `scale` pixels per unit of the file.
///
/// # Errors
/// [`RasterError`] if the text is no SVG, the picture is too large or its font is not here.
pub fn png(svg: &str, scale: f32, style: &Style) -> Result<Vec<u8>, RasterError> {
    let fonts = fonts(style)?;
    let tree =
        usvg::Tree::from_str(svg, &options(fonts)).map_err(|e| RasterError::Svg(e.to_string()))?;
    let size = tree.size().to_int_size().scale_by(scale);
    let mut pixels = size
        .and_then(|s| Pixmap::new(s.width(), s.height()))
        .ok_or_else(|| RasterError::Svg(format!("no picture of {:?} x {scale}", tree.size())))?;
    pixels.fill(Color::WHITE);
    resvg::render(
        &tree,
        Transform::from_scale(scale, scale),
        &mut pixels.as_mut(),
    );
    encoded(&pixels, named_and_described(svg)).map_err(|e| RasterError::Svg(e.to_string()))
}

/// An opaque picture, with a title and a description. Drawings have few colours: without filters
/// they are smallest.
fn encoded(pixels: &Pixmap, words: [Option<String>; 2]) -> Result<Vec<u8>, EncodingError> {
    let mut file = Vec::new();
    let mut encoder = Encoder::new(&mut file, pixels.width(), pixels.height());
    encoder.set_color(ColorType::Rgba);
    encoder.set_filter(Filter::NoFilter);
    for (keyword, text) in ["Title", "Description"].into_iter().zip(words) {
        if let Some(text) = text {
            encoder.add_itxt_chunk(keyword.to_owned(), text)?;
        }
    }
    encoder.write_header()?.write_image_data(pixels.data())?;
    Ok(file)
}

/// Settings under which text becomes outlines: these fonts, and their sans-serif for a family that
/// is missing.
pub(super) fn options(fonts: Arc<fontdb::Database>) -> usvg::Options<'static> {
    let family = fonts.family_name(&fontdb::Family::SansSerif).to_owned();
    usvg::Options {
        font_family: family,
        fontdb: fonts,
        ..usvg::Options::default()
    }
}

/// The one bundled font, whatever is installed on the machine; the style's family and what is
/// installed where it names one.
pub(super) fn fonts(style: &Style) -> Result<Arc<fontdb::Database>, FontError> {
    let mut fonts = fontdb::Database::new();
    fonts.load_font_data(epaint_default_fonts::UBUNTU_LIGHT.to_vec());
    fonts.set_sans_serif_family(BUNDLED);
    if let Some(file) = style.font_file() {
        let bytes = std::fs::read(file).map_err(|e| FontError::Unusable(format!("{file}: {e}")))?;
        let known = fonts.len();
        fonts.load_font_data(bytes);
        let family = fonts.faces().nth(known).and_then(|f| f.families.first());
        let family = family.map(|(name, _)| name.clone());
        let none = || FontError::Unusable(format!("{file}: not a font"));
        fonts.set_sans_serif_family(family.ok_or_else(none)?);
        return Ok(Arc::new(fonts));
    }
    let wanted = style.families();
    if !wanted.is_empty() {
        #[cfg(feature = "pdf")]
        fonts.load_system_fonts();
        let has = |family: &&String| {
            let query = fontdb::Query {
                families: &[fontdb::Family::Name(family)],
                ..fontdb::Query::default()
            };
            fonts.query(&query).is_some()
        };
        match wanted.iter().find(has) {
            Some(family) => fonts.set_sans_serif_family(family.clone()),
            None => return Err(FontError::Missing(wanted)),
        }
    }
    Ok(Arc::new(fonts))
}

const BUNDLED: &str = "Ubuntu";
