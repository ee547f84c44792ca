//! Directories that contain the user's files.

use super::{ConfigError, Environment};
use crate::protocol::Problem;
use std::path::{Path, PathBuf};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Directories {
    /// Directory with the user's settings and policy.
    pub config: PathBuf,
    /// Directory with sessions, artifacts and logs.
    pub data: PathBuf,
    /// Directory for data that is shared between runs even if their sessions are not saved, such as MCP server pins.
    /// Normally the same as `data`.
    pub shared: PathBuf,
}

impl Directories {
    pub(crate) fn find(environment: &Environment) -> Result<Self, ConfigError> {
        let usual = directories::ProjectDirs::from("", "", "aye");
        let place = |variable: &str, usual: Option<PathBuf>| match environment.get(variable) {
            Some(given) => std::path::absolute(given)
                .map_err(|error| ConfigError::single(Problem::new(format!("{variable}: `{given}`")).because(error))),
            None => usual.ok_or_else(|| {
                let hint = format!("set HOME, or set {variable} to a directory");
                ConfigError::single(Problem::new("cannot find your home directory").hint(hint))
            }),
        };
        Ok(Self::new(
            place("AYE_CONFIG_DIR", usual.as_ref().map(|dirs| dirs.config_dir().to_owned()))?,
            place("AYE_DATA_DIR", usual.as_ref().map(|dirs| dirs.data_dir().to_owned()))?,
        ))
    }

    pub(crate) fn new(config: impl Into<PathBuf>, data: impl Into<PathBuf>) -> Self {
        let data = data.into();
        Self { config: config.into(), shared: data.clone(), data }
    }

    /// Returns the directory that contains the user's own files for a project, given the project's canonical path.
    pub(crate) fn project_dir(&self, real: &Path) -> PathBuf {
        self.config.join("projects").join(super::trust::directory_name(real))
    }

    pub(crate) fn config_file(&self) -> PathBuf {
        self.config.join("config.toml")
    }

    /// Returns the path of the user's key bindings file.
    pub(crate) fn keymap_file(&self) -> PathBuf {
        self.config.join("keymap.toml")
    }
}
