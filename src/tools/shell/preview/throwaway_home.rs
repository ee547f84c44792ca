//! Home directory for a command that runs in a layer. It is private, contains nothing but the visible paths, and is
//! discarded with the layer. After the run, it contains everything that the command tried to write to the home
//! directory.

use crate::sys::overlay::LayeredDirectory;
use crate::sys::sandbox::{Confinement, Substitute};
use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::path::{Path, PathBuf};

/// Maximum number of entries to examine after the run.
const MAX_ENTRIES: usize = 10_000;
/// Maximum number of paths to report.
const MAX_PATHS: usize = 8;

/// Caches, locks and histories that programs write to the home directory as a side effect. They are not reported.
const INCIDENTAL: &[&str] = &[
    ".bash_history",
    ".cache",
    ".cargo/.global-cache",
    ".cargo/.package-cache",
    ".cargo/.package-cache-mutate",
    ".cargo/git",
    ".cargo/registry",
    ".config/go/telemetry",
    ".gradle",
    ".lesshst",
    ".local/share/pnpm",
    ".m2/repository",
    ".node_repl_history",
    ".npm",
    ".python_history",
    ".wget-hsts",
    "go/pkg",
];

/// A run's private home directory.
#[derive(Debug)]
pub(super) struct ThrowawayHome {
    home: PathBuf,
    content: PathBuf,
    /// Mount points and symlinks that were created in the private home directory, as relative paths.
    made: BTreeSet<PathBuf>,
}

impl ThrowawayHome {
    /// Replaces the hidden home directory in a confinement with a private one whose content is in `content`. Returns
    /// `Ok(None)` if the whole home directory is visible.
    pub(super) fn make(home: &Path, content: PathBuf, confinement: &mut Confinement) -> io::Result<Option<Self>> {
        let Confinement { roots, shown, caches, substitutes, writable, hidden, links, .. } = confinement;
        let visible = roots.iter().chain(shown.iter()).chain(writable.iter());
        let visible = visible.chain(caches.iter().map(|LayeredDirectory { directory, .. }| directory));
        let visible: BTreeSet<PathBuf> = visible.chain(substitutes.iter().map(|one| &one.directory)).cloned().collect();
        let is_hidden = hidden.iter().any(|place| home.starts_with(place));
        if !is_hidden || visible.iter().any(|place| home.starts_with(place)) {
            return Ok(None);
        }
        let mut made = Self { home: home.to_owned(), content, made: BTreeSet::new() };
        made.directory(Path::new(""))?;
        let covers = |place: &Path| place.ancestors().skip(1).any(|above| visible.contains(above));
        for place in visible.iter().filter(|place| !covers(place)) {
            let Ok(below) = place.strip_prefix(home) else { continue };
            match fs::metadata(place) {
                Ok(data) if data.is_dir() => made.directory(below)?,
                Ok(_) => made.file(below)?,
                Err(_) => {}
            }
        }
        for (link, target) in links.iter().filter(|(link, _)| !covers(link)) {
            if let Ok(below) = link.strip_prefix(home) {
                made.link(below, target)?;
            }
        }
        // In the private directory, there is nothing to hide.
        hidden.retain(|place| !place.starts_with(home) || covers(place));
        substitutes.push(Substitute { directory: home.to_owned(), content: made.content.clone() });
        Ok(Some(made))
    }

    fn directory(&mut self, below: &Path) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(self.content.join(below))?;
        self.made.extend(below.ancestors().map(Path::to_owned));
        Ok(())
    }

    fn parent(&mut self, below: &Path) -> io::Result<()> {
        self.directory(below.parent().unwrap_or(Path::new("")))?;
        self.made.insert(below.to_owned());
        Ok(())
    }

    fn file(&mut self, below: &Path) -> io::Result<()> {
        self.parent(below)?;
        File::create(self.content.join(below)).map(drop)
    }

    fn link(&mut self, below: &Path, target: &Path) -> io::Result<()> {
        self.parent(below)?;
        match symlink(target, self.content.join(below)) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            linked => linked,
        }
    }

    /// Returns the real paths to which the command has written. For a new directory, returns only the topmost path,
    /// with a trailing slash.
    pub(super) fn written_paths(&self) -> Vec<PathBuf> {
        let (mut found, mut left, mut open) = (Vec::new(), MAX_ENTRIES, vec![PathBuf::new()]);
        while let Some(directory) = open.pop() {
            let entries = fs::read_dir(self.content.join(&directory)).into_iter().flatten().flatten();
            for entry in entries.take(left) {
                left -= 1;
                let below = directory.join(entry.file_name());
                let real = self.home.join(&below);
                let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
                let is_there = || real.symlink_metadata().is_ok_and(|data| data.is_dir());
                let is_above = || INCIDENTAL.iter().any(|place| Path::new(place).starts_with(&below));
                if INCIDENTAL.iter().any(|place| below == Path::new(place)) {
                    continue;
                }
                if is_directory && (self.made.contains(&below) || is_there() || is_above()) {
                    open.push(below);
                } else if !self.made.contains(&below) {
                    found.push(if is_directory { real.join("") } else { real });
                }
            }
        }
        found.sort();
        found.truncate(MAX_PATHS);
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::sandbox::Backend;

    #[test]
    fn visible_paths_have_mount_points_and_only_new_files_count_as_written() {
        let ground = tempfile::tempdir().unwrap();
        let home = ground.path().join("home");
        for directory in ["work", ".tool/bin", ".config", "notes"] {
            fs::create_dir_all(home.join(directory)).unwrap();
        }
        fs::write(home.join(".settings"), "").unwrap();
        let mut confinement = Confinement::new(Backend::Namespaces, vec![home.join("work")]);
        confinement.hidden = vec![home.clone(), home.join(".ssh"), home.join(".tool/secret"), home.join("work/.env")];
        confinement.shown = vec![home.join(".tool"), home.join(".tool/bin"), home.join(".settings")];
        confinement.links = vec![(home.join(".bin/x"), "/usr/bin/x".into())];
        let content = ground.path().join("content");
        let made = ThrowawayHome::make(&home, content.clone(), &mut confinement).unwrap().unwrap();
        assert_eq!(confinement.hidden, [home.join(".tool/secret"), home.join("work/.env")]);
        assert!(content.join("work").is_dir() && content.join(".tool").is_dir() && content.join(".settings").is_file());
        assert!(!content.join(".tool/bin").exists() && content.join(".bin/x").is_symlink());
        assert!(made.written_paths().is_empty());
        fs::create_dir_all(content.join(".config/app/deep")).unwrap();
        fs::create_dir_all(content.join("notes")).unwrap();
        fs::write(content.join("notes/a"), "").unwrap();
        fs::write(content.join(".bin/y"), "").unwrap();
        fs::create_dir_all(content.join(".cargo/registry")).unwrap();
        fs::write(content.join(".cargo/.package-cache"), "").unwrap();
        fs::create_dir_all(content.join(".npm/_logs")).unwrap();
        assert_eq!(made.written_paths(), [home.join(".bin/y"), home.join(".config/app/"), home.join("notes/a")]);
        fs::write(content.join(".cargo/config.toml"), "").unwrap();
        assert!(made.written_paths().contains(&home.join(".cargo/config.toml")));
        // A home directory that is visible as a whole is not replaced.
        let mut visible = Confinement::new(Backend::Namespaces, vec![ground.path().to_owned()]);
        visible.hidden = vec![home.clone()];
        assert!(ThrowawayHome::make(&home, content, &mut visible).unwrap().is_none());
    }
}
