//! Layer for hooks that follow a call. It contains the proposed files or a command's effects, so that hooks can check
//! and format them before anything is written.

use super::overlay_dir::Call;
use super::run::{PreparedPreview, PreviewedCommand};
use crate::policy::BuildOutputMode;
use crate::protocol::{CallId, ErrorCode, ToolError};
use crate::sys::file::{create_below, read_below};
use crate::sys::overlay;
use crate::sys::sandbox::{Confinement, View};
use crate::tools::settings::ToolSettings;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Modes of new files and directories, as most programs create them.
const FILE_MODE: u32 = 0o644;
const DIRECTORY_MODE: u32 = 0o755;

/// Either a layer over the workspace that contains proposed files and is removed on drop, or the layer of a command.
pub(in crate::tools) struct HookLayer {
    prepared: PreparedPreview,
}

impl HookLayer {
    /// Creates a layer. Nothing in it is ever applied.
    ///
    /// # Errors
    /// Returns an error if layers are not available on this system or under this policy.
    pub(in crate::tools) fn make(settings: &ToolSettings) -> Result<Self, ToolError> {
        let mut settings = settings.clone();
        // A discarded change must not leave build output.
        settings.command.sandbox.build_output = BuildOutputMode::Layer;
        // No call owns the layer, so there is nothing to recover after a crash.
        let call = Call { tool_call_id: CallId::new("hooks"), tool_name: "hooks".to_owned(), session_id: None };
        PreparedPreview::new(&call, Vec::new(), &settings).map(|prepared| Self { prepared })
    }

    /// Returns the layer in which a command ran, for hooks that follow the command. They do not receive the access that
    /// the command had beyond the workspace. The command must outlive the hooks.
    ///
    /// # Errors
    /// Returns an error if layers are not available on this system or under this policy, or if the directories of the
    /// workspace have changed.
    pub(in crate::tools) fn of_command(command: &PreviewedCommand, settings: &ToolSettings) -> Result<Self, ToolError> {
        let Self { mut prepared } = Self::make(settings)?;
        if !prepared.layers.iter().map(|layered| &layered.directory).eq(command.layers.iter().map(|layered| &layered.directory)) {
            return Err(ToolError::new(ErrorCode::Conflict, "the directories of the workspace have changed"));
        }
        prepared.layers.clone_from(&command.layers);
        prepared.began = command.began;
        prepared.confinement.view = View::CopyOnWrite(command.layers.clone());
        Ok(Self { prepared })
    }

    /// Returns the confinement for a command that runs in the layer.
    pub(in crate::tools) fn confinement(&self) -> &Confinement {
        &self.prepared.confinement
    }

    /// Returns the location in the layer that corresponds to a real path, or `None` if the path is outside the
    /// workspace.
    fn place(&self, real: &Path) -> Option<(PathBuf, PathBuf, &Path)> {
        let over = self.prepared.layers.iter().filter(|layered| real.starts_with(&layered.directory));
        let layered = over.max_by_key(|layered| layered.directory.components().count())?;
        let below = real.strip_prefix(&layered.directory).ok()?.to_owned();
        Some((layered.upper.clone(), below, &layered.directory))
    }

    /// Writes a file to the layer, in which no hook may have run yet. Returns `Ok(false)` if the path is not below the
    /// layer.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written, or if its path leads through anything other than directories.
    pub(in crate::tools) fn write(&self, real: &Path, text: &str) -> io::Result<bool> {
        let Some((upper, below, directory)) = self.place(real) else { return Ok(false) };
        let mode_of = |path: &Path| {
            let known = fs::metadata(directory.join(path)).ok().map(|known| known.permissions().mode() & 0o777);
            known.unwrap_or(if path == below { FILE_MODE } else { DIRECTORY_MODE })
        };
        create_below(&upper, &below, text.as_bytes(), &mode_of)?;
        Ok(true)
    }

    /// Returns the text of a file in the layer, in which no hook may be running at the time. Returns `None` if it is
    /// not a text file within the size limit.
    pub(in crate::tools) fn read(&self, real: &Path, max_bytes: u64) -> Option<String> {
        let (upper, below, _) = self.place(real)?;
        String::from_utf8(read_below(&upper, &below, max_bytes).ok()?).ok()
    }

    /// Returns the paths, relative to the workspace, that hooks changed although they are not in `known`.
    pub(in crate::tools) fn other_changes(&self, known: &[PathBuf]) -> Vec<String> {
        let mut others = Vec::new();
        for layered in &self.prepared.layers {
            let Ok(changes) = overlay::changes(layered, self.prepared.began) else { continue };
            // The parent directories of a proposed file are in the layer, too.
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
