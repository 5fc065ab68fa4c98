//! Where fetched files go at this host.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use super::{End, File};
use crate::content::{failed_on, here};
use crate::file::{Directory, Item, Made, Name, NameError, Place, Target, Ways};

/// Destination of fetched files at this host.
#[derive(Clone, Debug)]
pub enum Base {
    /// The one file that is fetched gets this path.
    Exact(PathBuf),
    /// Files go below this directory, under their names without this many bytes at the start.
    Below(Arc<Directory>, usize),
    /// They would go to a directory that is not there yet.
    Nowhere,
}

impl Base {
    /// Of what another host calls a name nothing leads out of the directory.
    fn name(&self, item: &Item) -> io::Result<Option<Name>> {
        let bad = |e: NameError| io::Error::new(io::ErrorKind::InvalidInput, e.to_string());
        match self {
            Self::Exact(_) | Self::Nowhere => Ok(None),
            Self::Below(_, cut) => {
                let name = item.name.get(*cut..).unwrap_or_default();
                Name::parse(name).map(Some).map_err(bad)
            }
        }
    }

    pub(super) fn place(&self, item: &Item, ways: &mut Ways) -> io::Result<Place> {
        let place = match (self, self.name(item)?) {
            (Self::Below(directory, _), Some(name)) => ways.place(directory, &name)?,
            (Self::Exact(path), _) => Place::local(path)?,
            (Self::Nowhere, _) => return Err(io::ErrorKind::NotFound.into()),
            (Self::Below(..), None) => return Err(io::ErrorKind::InvalidInput.into()),
        };
        Ok(place.with_mode(item.mode))
    }

    fn make(&self, item: &Item, made: &mut Made) -> io::Result<()> {
        match (self, self.name(item)?) {
            (Self::Below(directory, _), Some(name)) => {
                directory.make(&name, item.source.is_none(), item.mode, made)
            }
            _ => Ok(()),
        }
    }

    /// Removes those of the directories `made` that are empty.
    pub(super) fn unmake(&self, made: &Made) {
        if let Self::Below(directory, _) = self {
            directory.unmake(made, |_| true);
        }
    }
}

impl File {
    /// Makes its directory, and itself if it is one.
    pub(super) fn make(&mut self, base: &Base, ways: &mut Ways, made: &mut Made) {
        let made = base.make(&self.item, made).and_then(|()| {
            if let (Some(source), End::Nothing) = (self.item.source, &self.end) {
                let place = Arc::new(base.place(&self.item, ways)?);
                self.end = End::Target(Target::new(place, source));
            }
            Ok(())
        });
        if let Err(e) = made {
            let why = here(&failed_on(&self.item.name, &e));
            self.fail(why);
        }
    }
}
