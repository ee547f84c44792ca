//! Writes starter policies. An existing file is backed up before it is replaced.

use super::error::CliError;
use crate::protocol::Problem;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// Maximum number of backups.
const MAX_BACKUPS: u32 = 1000;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Preset {
    #[default]
    Ask,
    Strict,
    Relaxed,
    Readonly,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Template {
    Preset(Preset),
    Project,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InitPlace {
    Stdout,
    /// Writes a new file, failing if it exists.
    NewFile,
    /// Replaces an existing file after backing it up.
    Replace,
}

pub(crate) const TEMPLATES: [(Template, &str); 5] = [
    (Template::Preset(Preset::Ask), include_str!("../../assets/policy/default.toml")),
    (Template::Preset(Preset::Strict), include_str!("../../assets/policy/strict.toml")),
    (Template::Preset(Preset::Relaxed), include_str!("../../assets/policy/relaxed.toml")),
    (Template::Preset(Preset::Readonly), include_str!("../../assets/policy/readonly.toml")),
    (Template::Project, include_str!("../../assets/policy/project.toml")),
];

/// Returns the text of a template. The default template differs from the built-in policy when it is written to a file:
/// it has another version name, and it extends the built-in policy so that it includes capabilities added in later
/// versions.
pub(crate) fn template_text(template: Template) -> String {
    let text = TEMPLATES.iter().find(|(known, _)| *known == template).map_or("", |(_, text)| *text);
    text.replacen(
        "bundle_version = \"built-in.1\"\n",
        "bundle_version = \"ask.1\"\nextends = \"built-in\"                      # for the capabilities that are not listed here\n",
        1,
    )
}

/// Writes the file atomically. If the file already existed, returns the path of the backup.
pub(crate) fn write(
    directory: &Path,
    file: &Path,
    text: &str,
    private: bool,
    replace: bool,
) -> Result<Option<PathBuf>, CliError> {
    let cannot = |what: &Path| {
        let what = what.display().to_string();
        move |error: std::io::Error| CliError::failed(Problem::new(format!("cannot write `{what}`")).because(error))
    };
    // A project could have put a symlink here that points outside the project.
    if !private && directory.symlink_metadata().is_ok_and(|metadata| !metadata.is_dir()) {
        return Err(CliError::usage(format!(
            "`{}` is not a directory; aye does not write a policy through a symlink",
            directory.display()
        )));
    }
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, if private { 0o700 } else { 0o755 });
    builder.create(directory).map_err(cannot(directory))?;
    let there = file.symlink_metadata();
    if there.is_err() {
        let mut new = create(file, private).map_err(|error| write_error(file, error))?;
        return fill(&mut new, text.as_bytes()).map(|()| None).map_err(cannot(file));
    }
    if !replace {
        return Err(write_error(file, ErrorKind::AlreadyExists.into()));
    }
    if there.is_ok_and(|metadata| metadata.is_dir()) {
        return Err(CliError::usage(format!("cannot replace `{}`: it is a directory", file.display())));
    }
    let backup = match std::fs::read(file) {
        Ok(old) => Some(keep(file, &old, private).map_err(cannot(file))?),
        // The file is a dangling symlink.
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(CliError::failed(format!("cannot back up `{}`: {error}", file.display()))),
    };
    // A policy file exists at all times: either the old or the new file.
    let mut new = tempfile::Builder::new().prefix(".policy").tempfile_in(directory).map_err(cannot(directory))?;
    fill(new.as_file_mut(), text.as_bytes()).map_err(cannot(file))?;
    #[cfg(unix)]
    if !private {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o644);
        new.as_file().set_permissions(mode).map_err(cannot(file))?;
    }
    new.persist(file).map_err(|error| cannot(file)(error.error))?;
    Ok(backup)
}

fn write_error(file: &Path, error: std::io::Error) -> CliError {
    if error.kind() == ErrorKind::AlreadyExists {
        let name = file.display();
        return CliError::usage(format!("`{name}` already exists"))
            .hint("pass `--force` to replace it (the old file is backed up), or `--stdout` to print the policy instead");
    }
    CliError::failed(Problem::new(format!("cannot write `{}`", file.display())).because(error))
}

/// Creates a new file, failing if it already exists.
fn create(file: &Path, private: bool) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, if private { 0o600 } else { 0o644 });
    options.open(file)
}

fn fill(file: &mut File, bytes: &[u8]) -> std::io::Result<()> {
    file.write_all(bytes)?;
    file.sync_all()
}

/// Saves a backup as `policy.toml.1`, or under the next number that is not in use.
pub(crate) fn keep(file: &Path, old: &[u8], private: bool) -> std::io::Result<PathBuf> {
    for number in 1..=MAX_BACKUPS {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let backup = file.with_file_name(format!("{name}.{number}"));
        match create(&backup, private) {
            Ok(mut kept) => return fill(&mut kept, old).map(|()| backup),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(ErrorKind::AlreadyExists.into())
}
