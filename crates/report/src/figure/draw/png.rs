//! An SVG as PNG bytes, and the fonts for that.

use std::sync::Arc;

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
    use resvg::tiny_skia;
    let fonts = fonts(style)?;
    let tree =
        usvg::Tree::from_str(svg, &options(fonts)).map_err(|e| RasterError::Svg(e.to_string()))?;
    let size = tree.size().to_int_size().scale_by(scale);
    let mut pixels = size
        .and_then(|s| tiny_skia::Pixmap::new(s.width(), s.height()))
        .ok_or_else(|| RasterError::Svg(format!("no picture of {:?} x {scale}", tree.size())))?;
    resvg::render(
        &tree,
        tiny_skia::Transform::from_scale(scale, scale),
        &mut pixels.as_mut(),
    );
    let bytes = pixels.encode_png();
    let bytes = bytes.map_err(|e| RasterError::Svg(e.to_string()))?;
    Ok(with_words(bytes, named_and_described(svg)))
}

/// A PNG with its title and description, as international text (PNG 3rd edition, 11.3.3.4) behind
/// the header.
fn with_words(mut png: Vec<u8>, words: [Option<String>; 2]) -> Vec<u8> {
    let mut chunks = Vec::new();
    for (keyword, text) in ["Title", "Description"].into_iter().zip(words) {
        let Some(text) = text else { continue };
        // Not compressed, no language, no translated keyword.
        let body = format!("iTXt{keyword}\0\0\0\0\0{text}");
        let mut sum = flate2::Crc::new();
        sum.update(body.as_bytes());
        let length = (body.len() - 4) as u32;
        chunks.extend(length.to_be_bytes());
        chunks.extend(body.as_bytes());
        chunks.extend(sum.sum().to_be_bytes());
    }
    png.splice(AFTER_HEADER..AFTER_HEADER, chunks);
    png
}

/// Length of the signature and of the chunk IHDR.
const AFTER_HEADER: usize = 8 + 25;

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
