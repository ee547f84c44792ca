//! Layer for hooks on proposed files, so that hooks can check and format the files before anything is written.

use super::overlay_dir::Call;
use super::run::PreparedPreview;
use crate::policy::BuildOutputMode;
use crate::protocol::{CallId, ToolError};
use crate::sys::overlay;
use crate::sys::sandbox::Confinement;
use crate::tools::settings::Settings;
use std::fs::{self, DirBuilder, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Mode of new files and directories, as most programs create them.
const FILE_MODE: u32 = 0o644;
const DIRECTORY_MODE: u32 = 0o755;

/// Layer over the workspace with proposed files. Dropping it discards it.
pub(in crate::tools) struct HookLayer {
    prepared: PreparedPreview,
}

impl HookLayer {
    /// Creates a layer. Nothing in it is ever applied.
    ///
    /// # Errors
    /// Returns an error if this system or the policy does not provide layers.
    pub(in crate::tools) fn make(settings: &Settings) -> Result<Self, ToolError> {
        let mut settings = settings.clone();
        // A discarded change must not leave build output.
        settings.command.sandbox.build_output = BuildOutputMode::Layer;
        // No call owns it, so there is nothing to recover after a crash.
        let call = Call { tool_call_id: CallId::new("hooks"), tool_name: "hooks".to_owned(), session_id: None };
        PreparedPreview::new(&call, Vec::new(), &settings).map(|prepared| Self { prepared })
    }

    /// Returns the confinement of a command in the layer.
    pub(in crate::tools) fn confinement(&self) -> &Confinement {
        &self.prepared.confinement
    }

    /// Returns the path in the layer for a real path; `None` outside the workspace.
    fn place(&self, real: &Path) -> Option<(PathBuf, PathBuf, &Path)> {
        let over = self.prepared.layers.iter().filter(|layered| real.starts_with(&layered.directory));
        let layered = over.max_by_key(|layered| layered.directory.components().count())?;
        let below = real.strip_prefix(&layered.directory).ok()?.to_owned();
        Some((layered.upper.clone(), below, &layered.directory))
    }

    /// Writes a file into the layer before any hook has run in it. Returns whether the layer covers the path and all
    /// parents of the file are directories.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub(in crate::tools) fn write(&self, real: &Path, text: &str) -> io::Result<bool> {
        let Some((upper, below, directory)) = self.place(real) else { return Ok(false) };
        let parents: Vec<&Path> = below.ancestors().skip(1).filter(|path| !path.as_os_str().is_empty()).collect();
        for parent in parents.into_iter().rev() {
            let place = upper.join(parent);
            match place.symlink_metadata() {
                Ok(found) if found.is_dir() => {}
                // A link would lead out of the layer.
                Ok(_) => return Ok(false),
                Err(_) => {
                    let known = fs::metadata(directory.join(parent)).ok();
                    let mode = known.map_or(DIRECTORY_MODE, |known| known.permissions().mode() & 0o777);
                    DirBuilder::new().mode(0o700).create(&place)?;
                    fs::set_permissions(&place, Permissions::from_mode(mode))?;
                }
            }
        }
        let place = upper.join(&below);
        let mode = fs::metadata(real).map_or(FILE_MODE, |known| known.permissions().mode() & 0o777);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&place)?;
        file.write_all(text.as_bytes())?;
        file.set_permissions(Permissions::from_mode(mode))?;
        Ok(true)
    }

    /// Returns the text of a file in the layer while no hook runs; `None` if it is not a text file within the size
    /// limit.
    pub(in crate::tools) fn read(&self, real: &Path, most_bytes: u64) -> Option<String> {
        let (upper, below, _) = self.place(real)?;
        let place = upper.join(below);
        // Directories on the way are those of the layer: a link there would lead out of it.
        let is_plain = place
            .ancestors()
            .take_while(|path| path.starts_with(&upper))
            .all(|path| path.symlink_metadata().is_ok_and(|found| found.is_file() || found.is_dir()));
        let bytes = is_plain.then(|| crate::sys::file::read(&place, most_bytes).ok()).flatten()?;
        String::from_utf8(bytes).ok()
    }

    /// Returns the other paths that hooks changed, relative to the workspace.
    pub(in crate::tools) fn other_changes(&self, known: &[PathBuf]) -> Vec<String> {
        let mut others = Vec::new();
        for layered in &self.prepared.layers {
            let Ok(changes) = overlay::changes(layered, self.prepared.began) else { continue };
            // A directory on the way to a file is part of the layer, too.
            let is_other = |path: &Path| {
                let real = layered.directory.join(path);
                !known.iter().any(|known| known.starts_with(&real))
            };
            let entries = changes.entries().iter().filter(|change| !change.is_only_touched()).map(|change| change.path.as_path());
            others.extend(entries.filter(|path| is_other(path)).map(|path| path.display().to_string()));
        }
        others
    }
}
