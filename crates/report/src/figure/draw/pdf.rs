//! An SVG as PDF bytes: lines stay lines, text stays text, and its font is embedded.

use std::collections::BTreeMap;

use pdf_writer::types::{
    CidFontType, FontFlags, LineCapStyle, LineJoinStyle, SystemInfo, UnicodeCmap,
};
use pdf_writer::{Content, Filter, Finish, Name, Pdf, Rect, Ref, Str, TextStr};
use resvg::usvg::{self, fontdb, tiny_skia_path::PathSegment};
use skrifa::instance::{LocationRef, Size};
use skrifa::{FontRef, GlyphId, MetadataProvider as _, Tag};
use subsetter::GlyphRemapper;

use super::png::{FontError, RasterError, fonts, options};
use super::svg::named_and_described;
use crate::figure::Style;

/// The PDF of an SVG that this module drew for the style: one page of its size.
///
/// # Errors
/// If the text is no SVG, or if the style's font is not on this machine.
pub fn pdf(svg: &str, style: &Style) -> Result<Vec<u8>, RasterError> {
    let fonts = fonts(style)?;
    let tree =
        usvg::Tree::from_str(svg, &options(fonts)).map_err(|e| RasterError::Svg(e.to_string()))?;
    // usvg has 96 units to the inch, PDF 72.
    let scale = 0.75;
    let size = tree.size();
    let (width, height) = (size.width() * scale, size.height() * scale);
    let mut page = Page {
        content: Content::new(),
        tree: &tree,
        faces: Vec::new(),
        alphas: Vec::new(),
    };
    page.content
        .transform([scale, 0.0, 0.0, -scale, 0.0, height]);
    page.group(tree.root());
    page.finish((width, height), named_and_described(svg))
}

/// The page being written.
struct Page<'a> {
    content: Content,
    tree: &'a usvg::Tree,
    /// In the order of their first letter.
    faces: Vec<(fontdb::ID, Face)>,
    /// Opacities of strokes and fills, in hundredths.
    alphas: Vec<u32>,
}

/// A font, and what is used of it.
struct Face {
    data: Vec<u8>,
    index: u32,
    glyphs: GlyphRemapper,
    texts: BTreeMap<u16, String>,
}

impl Page<'_> {
    fn group(&mut self, group: &usvg::Group) {
        self.content.save_state();
        self.content.transform(matrix(group.transform()));
        if let Some(clip) = group.clip_path() {
            // Ours are rectangles.
            for node in clip.root().children() {
                if let usvg::Node::Path(path) = node {
                    self.path(path.data());
                }
            }
            self.content.clip_nonzero().end_path();
        }
        for node in group.children() {
            match node {
                usvg::Node::Group(group) => self.group(group),
                usvg::Node::Path(path) => self.shape(path),
                usvg::Node::Text(text) => self.text(text),
                usvg::Node::Image(_) => {}
            }
        }
        self.content.restore_state();
    }

    fn shape(&mut self, path: &usvg::Path) {
        if let Some(fill) = path.fill()
            && let usvg::Paint::Color(c) = fill.paint()
        {
            self.content.save_state();
            self.opacity(fill.opacity().get());
            let [r, g, b] = colour(*c);
            self.content.set_fill_rgb(r, g, b);
            self.path(path.data());
            self.content.fill_nonzero().restore_state();
        }
        if let Some(stroke) = path.stroke()
            && let usvg::Paint::Color(c) = stroke.paint()
        {
            self.content.save_state();
            self.opacity(stroke.opacity().get());
            let [r, g, b] = colour(*c);
            self.content.set_stroke_rgb(r, g, b);
            self.content.set_line_width(stroke.width().get());
            self.content.set_line_cap(LineCapStyle::ButtCap);
            self.content.set_line_join(match stroke.linejoin() {
                usvg::LineJoin::Round => LineJoinStyle::RoundJoin,
                _ => LineJoinStyle::MiterJoin,
            });
            if let Some(dashes) = stroke.dasharray() {
                self.content
                    .set_dash_pattern(dashes.iter().copied(), stroke.dashoffset());
            }
            self.path(path.data());
            self.content.stroke().restore_state();
        }
    }

    fn path(&mut self, path: &usvg::tiny_skia_path::Path) {
        let mut at = usvg::tiny_skia_path::Point::zero();
        for segment in path.segments() {
            match segment {
                PathSegment::MoveTo(p) => {
                    self.content.move_to(p.x, p.y);
                    at = p;
                }
                PathSegment::LineTo(p) => {
                    self.content.line_to(p.x, p.y);
                    at = p;
                }
                PathSegment::QuadTo(c, p) => {
                    let third = |a: f32, b: f32| a + (b - a) * 2.0 / 3.0;
                    let (x1, y1) = (third(at.x, c.x), third(at.y, c.y));
                    let (x2, y2) = (third(p.x, c.x), third(p.y, c.y));
                    self.content.cubic_to(x1, y1, x2, y2, p.x, p.y);
                    at = p;
                }
                PathSegment::CubicTo(a, b, p) => {
                    self.content.cubic_to(a.x, a.y, b.x, b.y, p.x, p.y);
                    at = p;
                }
                PathSegment::Close => {
                    self.content.close_path();
                }
            }
        }
    }

    fn opacity(&mut self, alpha: f32) {
        let hundredths = (alpha * 100.0).round() as u32;
        if hundredths >= 100 {
            return;
        }
        if !self.alphas.contains(&hundredths) {
            self.alphas.push(hundredths);
        }
        let name = alpha_name(hundredths);
        self.content.set_parameters(Name(name.as_bytes()));
    }

    fn text(&mut self, text: &usvg::Text) {
        for span in text.layouted() {
            let Some(usvg::Paint::Color(c)) = span.fill.as_ref().map(|f| f.paint()) else {
                continue;
            };
            let [r, g, b] = colour(*c);
            self.content.set_fill_rgb(r, g, b);
            self.content.begin_text();
            for glyph in &span.positioned_glyphs {
                let (Ok(old), Some(at)) = (u16::try_from(glyph.id.0), self.face(glyph.font)) else {
                    continue;
                };
                let face = &mut self.faces[at].1;
                let new = face.glyphs.remap(old);
                face.texts.insert(new, glyph.text.clone());
                let name = font_name(at);
                // The transform takes units of the font; a letter of size 1 is an em of them.
                let em = glyph.font_size() / scale_of(glyph);
                let at = glyph.outline_transform().pre_scale(em, em);
                self.content.set_font(Name(name.as_bytes()), 1.0);
                self.content.set_text_matrix(matrix(at));
                self.content.show(Str(&new.to_be_bytes()));
            }
            self.content.end_text();
        }
    }

    /// Place of a font among those that are used.
    fn face(&mut self, id: fontdb::ID) -> Option<usize> {
        if let Some(at) = self.faces.iter().position(|(known, _)| *known == id) {
            return Some(at);
        }
        let fonts = self.tree.fontdb();
        let (data, index) = fonts.with_face_data(id, |data, index| (data.to_vec(), index))?;
        let face = Face {
            data,
            index,
            glyphs: GlyphRemapper::new(),
            texts: BTreeMap::new(),
        };
        self.faces.push((id, face));
        Some(self.faces.len() - 1)
    }

    fn finish(
        self,
        (width, height): (f32, f32),
        [title, subject]: [Option<String>; 2],
    ) -> Result<Vec<u8>, RasterError> {
        let mut refs = (1..).map(Ref::new);
        let mut next = || refs.next().expect("endless");
        let (catalog, pages, page, content) = (next(), next(), next(), next());
        let mut pdf = Pdf::new();
        pdf.catalog(catalog).pages(pages);
        // Without a date: the same drawing gives the same bytes.
        let mut info = pdf.document_info(next());
        if let Some(title) = &title {
            info.title(TextStr(title));
        }
        if let Some(subject) = &subject {
            info.subject(TextStr(subject));
        }
        info.producer(TextStr("fullpipe"));
        info.finish();
        pdf.pages(pages).kids([page]).count(1);
        let names: Vec<(String, Ref)> = (0..self.faces.len())
            .map(|at| (font_name(at), next()))
            .collect();
        let states: Vec<(u32, Ref)> = self.alphas.iter().map(|a| (*a, next())).collect();
        let mut writer = pdf.page(page);
        writer.media_box(Rect::new(0.0, 0.0, width, height));
        writer.parent(pages).contents(content);
        let mut resources = writer.resources();
        let mut fonts = resources.fonts();
        for (name, at) in &names {
            fonts.pair(Name(name.as_bytes()), *at);
        }
        fonts.finish();
        let mut all = resources.ext_g_states();
        for (alpha, at) in &states {
            all.pair(Name(alpha_name(*alpha).as_bytes()), *at);
        }
        all.finish();
        resources.finish();
        writer.finish();
        for (alpha, at) in &states {
            let alpha = *alpha as f32 / 100.0;
            pdf.ext_graphics(*at)
                .stroking_alpha(alpha)
                .non_stroking_alpha(alpha);
        }
        for ((_, face), (_, at)) in self.faces.iter().zip(&names) {
            face.write(&mut pdf, *at, &mut next)?;
        }
        let bytes = deflated(&self.content.finish());
        pdf.stream(content, &bytes).filter(Filter::FlateDecode);
        Ok(pdf.finish())
    }
}

impl Face {
    /// A composite font whose codes are the glyphs' new numbers (ISO 32000-1, 9.7).
    fn write(
        &self,
        pdf: &mut Pdf,
        at: Ref,
        next: &mut dyn FnMut() -> Ref,
    ) -> Result<(), RasterError> {
        let bad = |why: String| RasterError::Font(FontError::Unusable(why));
        let font = FontRef::from_index(&self.data, self.index).map_err(|e| bad(e.to_string()))?;
        let metrics = font.metrics(Size::new(1000.0), LocationRef::default());
        let widths = font.glyph_metrics(Size::new(1000.0), LocationRef::default());
        let subset = subsetter::subset(&self.data, self.index, &self.glyphs)
            .map_err(|e| bad(e.to_string()))?;
        let parsed = FontRef::new(&subset).map_err(|e| bad(e.to_string()))?;
        let cff = parsed
            .table_data(Tag::new(b"CFF "))
            .map(|d| d.as_bytes().to_vec());
        let name = format!("FULPIP+{}", postscript_name(&font));
        let (cid, descriptor, file, unicode) = (next(), next(), next(), next());
        pdf.type0_font(at)
            .base_font(Name(name.as_bytes()))
            .encoding_predefined(Name(b"Identity-H"))
            .descendant_font(cid)
            .to_unicode(unicode);
        let mut writer = pdf.cid_font(cid);
        writer
            .subtype(match cff {
                Some(_) => CidFontType::Type0,
                None => CidFontType::Type2,
            })
            .base_font(Name(name.as_bytes()))
            .system_info(SYSTEM)
            .font_descriptor(descriptor)
            .default_width(0.0);
        if cff.is_none() {
            writer.cid_to_gid_map_predefined(Name(b"Identity"));
        }
        let advances = self.glyphs.remapped_gids().map(|old| {
            widths
                .advance_width(GlyphId::new(old.into()))
                .unwrap_or(0.0)
        });
        writer.widths().consecutive(0, advances);
        writer.finish();
        let bounds = metrics
            .bounds
            .map_or(Rect::new(0.0, -250.0, 1000.0, 1000.0), |b| {
                Rect::new(b.x_min, b.y_min, b.x_max, b.y_max)
            });
        let mut writer = pdf.font_descriptor(descriptor);
        writer
            .name(Name(name.as_bytes()))
            .flags(FontFlags::SYMBOLIC)
            .bbox(bounds)
            .italic_angle(metrics.italic_angle)
            .ascent(metrics.ascent)
            .descent(metrics.descent)
            .cap_height(metrics.cap_height.unwrap_or(metrics.ascent))
            .stem_v(80.0);
        match cff {
            Some(_) => writer.font_file3(file),
            None => writer.font_file2(file),
        };
        writer.finish();
        let bytes = deflated(cff.as_deref().unwrap_or(&subset));
        let mut stream = pdf.stream(file, &bytes);
        stream.filter(Filter::FlateDecode);
        if cff.is_some() {
            stream.pair(Name(b"Subtype"), Name(b"CIDFontType0C"));
        }
        stream.finish();
        let mut map = UnicodeCmap::new(Name(b"Custom"), SYSTEM);
        for (glyph, text) in self.texts.iter().filter(|(_, t)| !t.is_empty()) {
            map.pair_with_multiple(*glyph, text.chars());
        }
        pdf.cmap(unicode, &map.finish());
        Ok(())
    }
}

/// Font units to the drawing's, without turns.
fn scale_of(glyph: &usvg::layout::PositionedGlyph) -> f32 {
    let t = glyph.transform();
    (t.sx * t.sx + t.ky * t.ky).sqrt()
}

fn postscript_name(font: &FontRef<'_>) -> String {
    let id = skrifa::string::StringId::POSTSCRIPT_NAME;
    let name = font.localized_strings(id).next().map(|s| s.to_string());
    let plain = |c: &char| c.is_ascii_alphanumeric() || *c == '-';
    name.unwrap_or_default().chars().filter(plain).collect()
}

fn font_name(at: usize) -> String {
    format!("F{at}")
}

fn alpha_name(hundredths: u32) -> String {
    format!("A{hundredths}")
}

fn matrix(t: usvg::Transform) -> [f32; 6] {
    [t.sx, t.ky, t.kx, t.sy, t.tx, t.ty]
}

fn colour(c: usvg::Color) -> [f32; 3] {
    [c.red, c.green, c.blue].map(|c| f32::from(c) / 255.0)
}

fn deflated(bytes: &[u8]) -> Vec<u8> {
    use std::io::Write as _;
    let mut out = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
    // Writing to memory cannot fail.
    let _ = out.write_all(bytes);
    out.finish().unwrap_or_default()
}

const SYSTEM: SystemInfo<'static> = SystemInfo {
    registry: Str(b"Adobe"),
    ordering: Str(b"Identity"),
    supplement: 0,
};
