//! Pictures in a directory: one per case, and all of them in one.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use rayon::iter::{IndexedParallelIterator, IntoParallelRefIterator, ParallelIterator};

use super::draw::overview_svg;
use super::{Figure, FigureError, Style};

/// The pictures of a result.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// The directory they are in.
    pub dir: PathBuf,
    /// Cases that have one.
    pub cases: usize,
    /// All cases in one picture, if there are at least two.
    pub overview: Option<PathBuf>,
    /// The first case's picture.
    pub first: Option<PathBuf>,
    /// Those of cases are there as PNG, too; of very many only the overview is.
    pub as_png: bool,
}

/// Draws into `dir` the pictures of these cases (index and short label) and, if there are two, an
/// overview. `of` makes that of the case at a position, if it has one. Pictures that an earlier run
/// left there are removed.
pub(super) fn draw_all(
    dir: &Path,
    (title, subtitle): (&str, &str),
    cases: &[(usize, String)],
    of: impl Fn(usize) -> Result<Option<Figure>, FigureError> + Sync,
) -> Result<Written, FigureError> {
    fs::create_dir_all(dir).map_err(io_error("create", dir))?;
    let as_png = cases.len() <= MOST_AS_PNG;
    let draw = |at: usize, (case, label): &(usize, String)| {
        let Some(mut figure) = of(at)? else {
            return Ok(None);
        };
        let name = file_name(*case, label);
        write_picture(dir, &name, &figure.svg(&Style::default()), as_png)?;
        figure.subtitle.clone_from(label);
        Ok(Some((name, figure)))
    };
    let drawn: Vec<Option<(String, Figure)>> = cases
        .par_iter()
        .enumerate()
        .map(|(at, case)| draw(at, case))
        .collect::<Result<_, FigureError>>()?;
    let (mut names, panels): (Vec<String>, Vec<Figure>) = drawn.into_iter().flatten().unzip();
    let svg = |name: &String| dir.join(format!("{name}.svg"));
    let mut written = Written {
        dir: dir.to_owned(),
        cases: names.len(),
        overview: None,
        first: names.first().map(svg),
        as_png,
    };
    if panels.len() > 1 {
        let overview = OVERVIEW.to_owned();
        write_picture(
            dir,
            &overview,
            &overview_svg((title, subtitle), &Style::default(), &panels),
            true,
        )?;
        written.overview = Some(svg(&overview));
        names.push(overview);
    }
    remove_others(dir, &names, as_png)?;
    Ok(written)
}

/// `case-0003-highspeed-mtu-9000`; of a long label as many whole parts as there is room for.
fn file_name(case: usize, label: &str) -> String {
    let mut name = format!("case-{case:04}");
    for part in label.split(", ") {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '=');
        let words = part.split(|c| !plain(c)).filter(|word| !word.is_empty());
        let words: Vec<String> = words.map(str::to_ascii_lowercase).collect();
        let more = words.join("-");
        if more.is_empty() {
            continue;
        }
        if name.len() + 1 + more.len() > LONGEST_NAME {
            break;
        }
        name.push('-');
        name.push_str(&more);
    }
    name
}

#[cfg_attr(not(feature = "png"), expect(unused_variables))]
fn write_picture(dir: &Path, name: &str, svg: &str, as_png: bool) -> Result<(), FigureError> {
    write_file(&dir.join(format!("{name}.svg")), svg.as_bytes())?;
    #[cfg(feature = "png")]
    if as_png {
        let png = super::draw::png(svg, PNG_SCALE, &Style::default())?;
        write_file(&dir.join(format!("{name}.png")), &png)?;
    }
    Ok(())
}

/// A picture is whole or absent.
fn write_file(path: &Path, bytes: &[u8]) -> Result<(), FigureError> {
    let temporary = path.with_added_extension("tmp");
    let written = fs::File::create(&temporary)
        .and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_all()))
        .and_then(|()| fs::rename(&temporary, path));
    written.map_err(io_error("write", path))
}

/// Removes pictures of earlier runs, and nothing else.
fn remove_others(dir: &Path, names: &[String], as_png: bool) -> Result<(), FigureError> {
    for entry in fs::read_dir(dir).map_err(io_error("list", dir))? {
        let path = entry.map_err(io_error("list", dir))?.path();
        let (Some(name), Some(extension)) =
            (path.file_name().and_then(|n| n.to_str()), path.extension())
        else {
            continue;
        };
        let stem = name
            .trim_end_matches(".tmp")
            .rsplit_once('.')
            .map_or(name, |(stem, _)| stem);
        let ours = stem == OVERVIEW || stem.starts_with("case-");
        let left = extension == "tmp"
            || !names.iter().any(|n| n == stem)
            || (extension == "png" && !as_png && stem != OVERVIEW);
        if ours && left && ["svg", "png", "tmp"].iter().any(|e| extension == *e) {
            fs::remove_file(&path).map_err(io_error("remove", &path))?;
        }
    }
    Ok(())
}

fn io_error(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> FigureError {
    let path = path.to_owned();
    move |source| FigureError::Io {
        doing,
        path,
        source,
    }
}

const OVERVIEW: &str = "overview";
/// Most cases whose pictures are there as PNG, too: 100 kB and most of the time each.
const MOST_AS_PNG: usize = 100;
/// Bytes of a name without its ending. File systems allow 255, archives and encryption fewer.
const LONGEST_NAME: usize = 120;

/// Pixels per unit of the SVG.
#[cfg(feature = "png")]
const PNG_SCALE: f32 = 1.5;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_are_plain() {
        assert_eq!(
            file_name(3, "highspeed(low_window=31), mtu 9000"),
            "case-0003-highspeed-low_window=31-mtu-9000"
        );
        assert_eq!(
            file_name(
                2,
                "cubic, rate 1Gbit/s, rtt 80ms, buffer 0.25BDP, loss 0.001, window 64MB, a=1"
            ),
            "case-0002-cubic-rate-1gbit-s-rtt-80ms-buffer-0.25bdp-loss-0.001-window-64mb-a=1"
        );
        // Whole parts or none: half of a value is another value.
        let long = format!("{}, buffer 0.25BDP", "highspeed(low_window=31), ".repeat(5));
        let long = format!("{long}, rtt 80ms");
        let name = file_name(0, &long);
        assert!(
            name.len() <= LONGEST_NAME && name.ends_with("low_window=31"),
            "{name}"
        );
        assert_eq!(file_name(0, ""), "case-0000");
        assert_eq!(file_name(1, "../../etc"), "case-0001-..-..-etc");
    }

    #[test]
    fn only_pictures_of_ours_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        for name in [
            "case-0000-a.svg",
            "case-0000-b.png",
            "overview.svg",
            "case-0001.svg.tmp",
            "notes.svg",
            "case-0000-b.txt",
        ] {
            fs::write(dir.path().join(name), "x").unwrap();
        }
        let mut names = vec!["case-0000-a".to_owned()];
        remove_others(dir.path(), &names, true).unwrap();
        let left = || {
            let entries = fs::read_dir(dir.path()).unwrap();
            let mut left: Vec<_> = entries
                .map(|e| e.unwrap().file_name().into_string().unwrap())
                .collect();
            left.sort();
            left
        };
        assert_eq!(left(), ["case-0000-a.svg", "case-0000-b.txt", "notes.svg"]);
        // As many cases have no PNG any more; the overview has.
        for name in ["case-0000-a.png", "overview.png"] {
            fs::write(dir.path().join(name), "x").unwrap();
        }
        names.push(OVERVIEW.to_owned());
        remove_others(dir.path(), &names, false).unwrap();
        let kept = [
            "case-0000-a.svg",
            "case-0000-b.txt",
            "notes.svg",
            "overview.png",
        ];
        assert_eq!(left(), kept);
    }
}
