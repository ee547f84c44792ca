//! Copies plugin files within limits. Only regular files and folders are copied.

use crate::config::FilePin;
use crate::protocol::Problem;
use crate::sys::file::FileStamp;
use std::collections::{BTreeMap, HashSet, VecDeque};
use std::fs::{DirBuilder, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// Maximum number of files in a plugin.
pub(super) const MAX_FILES: usize = 2_000;
/// Maximum number of files and folders in a plugin, taken together.
pub(super) const MAX_ENTRIES: usize = 4_000;
/// Maximum nesting depth of folders in a plugin.
pub(super) const MAX_DEPTH: usize = 12;
/// Maximum size of a file, in bytes.
pub(super) const FILE_BYTES: u64 = 16 << 20;
/// Maximum total size of a plugin's files in bytes.
pub(super) const TOTAL_BYTES: u64 = 64 << 20;
/// Version control folders, which are not part of a plugin.
const SKIPPED: [&str; 3] = [".git", ".hg", ".svn"];
/// Folders and files of a plugin that aye reads.
const PARTS: [&str; 9] =
    ["skills", "agents", "commands", "tools", "hooks", ".claude-plugin", ".mcp.json", "plugin.json", "plugin.toml"];
/// Modes given to executable files, to other files, and to folders.
const PROGRAM_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;
const FOLDER_MODE: u32 = 0o700;
/// Mode bits that make a file executable.
const EXECUTABLE: u32 = 0o111;

/// Files that were copied.
#[derive(Debug, Default)]
pub(super) struct CopiedFiles {
    /// Hashes of the files, by path.
    pub files: BTreeMap<String, FilePin>,
    /// Symlinks that were not copied, by path.
    pub left_out: Vec<String>,
}

/// Copies all files in `source` to the empty folder `target`. Leaves out symlinks outside the parts that aye reads.
/// `after_read` is called after each file has been read.
///
/// # Errors
/// Returns an error if the folder contains anything else than files, folders and such links, exceeds a limit, or changes
/// while it is being copied.
pub(super) fn copy_files(source: &Path, target: &Path, after_read: &mut dyn FnMut(&str)) -> Result<CopiedFiles, Problem> {
    let CopiedFiles { mut files, mut left_out } = CopiedFiles::default();
    let (mut seen, mut total) = (HashSet::new(), 0);
    let mut folders = VecDeque::from([(String::new(), 0)]);
    while let Some((folder, depth)) = folders.pop_front() {
        for name in names(source, &folder)? {
            let path = format!("{folder}{name}");
            if !seen.insert(path.to_lowercase()) {
                return Err(Problem::new(format!("`{path}` differs from another file only in case")).hint("rename one of them"));
            }
            if seen.len() > MAX_ENTRIES {
                return Err(Problem::new(format!("the plugin has more than {MAX_ENTRIES} files and folders")));
            }
            let kind = std::fs::symlink_metadata(source.join(&path)).map_err(|error| unreadable(&path, error))?.file_type();
            if kind.is_dir() {
                if is_skipped(&name) {
                    continue;
                }
                if depth >= MAX_DEPTH {
                    return Err(Problem::new(format!("`{path}`: folders are nested more than {MAX_DEPTH} levels deep")));
                }
                DirBuilder::new().mode(FOLDER_MODE).create(target.join(&path)).map_err(|error| unwritable(&path, error))?;
                folders.push_back((format!("{path}/"), depth + 1));
                continue;
            }
            if kind.is_symlink() && !is_in_part(&path) {
                left_out.push(path);
                continue;
            }
            if !kind.is_file() {
                let what = if kind.is_symlink() { "a symlink" } else { "not a file" };
                return Err(Problem::new(format!("`{path}` is {what}")).because("a plugin can contain only files and folders"));
            }
            let file = copy_file(source, target, &path, after_read)?;
            total += file.bytes;
            files.insert(path, file);
            if files.len() > MAX_FILES {
                return Err(Problem::new(format!("the plugin has more than {MAX_FILES} files")));
            }
            if total > TOTAL_BYTES {
                return Err(Problem::new(format!("the files are larger than {} MB in total", TOTAL_BYTES >> 20)));
            }
        }
    }
    Ok(CopiedFiles { files, left_out })
}

/// Returns whether a path belongs to a part of a plugin that aye reads.
pub(super) fn is_in_part(path: &str) -> bool {
    let first = path.split('/').next().unwrap_or_default();
    PARTS.iter().any(|part| part.eq_ignore_ascii_case(first))
}

/// Returns whether a name contains only characters that neither terminals nor other systems interpret.
pub(super) fn is_plain_name(name: &str) -> bool {
    !name.chars().any(char::is_control) && !name.contains('\\')
}

/// Returns whether this is the name of a version control folder.
pub(super) fn is_skipped(name: &str) -> bool {
    SKIPPED.iter().any(|skipped| skipped.eq_ignore_ascii_case(name))
}

/// Returns the names of the entries in a folder, sorted.
fn names(source: &Path, folder: &str) -> Result<Vec<String>, Problem> {
    let shown = if folder.is_empty() { "." } else { folder };
    let entries = crate::sys::path::entries(&source.join(folder)).map_err(|error| unreadable(shown, error))?;
    let mut names = Vec::new();
    for entry in entries.take(MAX_ENTRIES + 1) {
        let name = entry.map_err(|error| unreadable(shown, error))?.file_name();
        let Some(plain) = name.to_str().filter(|name| is_plain_name(name)) else {
            let name = name.to_string_lossy();
            return Err(Problem::new(format!("`{folder}{}`: the name is not plain text", name.escape_debug())));
        };
        names.push(plain.to_owned());
    }
    names.sort();
    Ok(names)
}

fn copy_file(source: &Path, target: &Path, path: &str, after_read: &mut dyn FnMut(&str)) -> Result<FilePin, Problem> {
    let from = source.join(path);
    let stamp = || std::fs::symlink_metadata(&from).map_err(|error| unreadable(path, error));
    let before = stamp()?;
    let content = crate::sys::file::read(&from, FILE_BYTES).map_err(|error| unreadable(path, error))?;
    after_read(path);
    if FileStamp::from_metadata(&before) != FileStamp::from_metadata(&stamp()?) {
        let problem = Problem::new(format!("`{path}` changed while it was copied"));
        return Err(problem.hint("run the command again when the folder no longer changes"));
    }
    let mode = if before.permissions().mode() & EXECUTABLE == 0 { FILE_MODE } else { PROGRAM_MODE };
    let write = || {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(target.join(path))?;
        file.write_all(&content)
    };
    write().map_err(|error| unwritable(path, error))?;
    Ok(FilePin { bytes: content.len() as u64, hash: blake3::hash(&content).to_hex().to_string() })
}

fn unreadable(path: &str, error: impl std::fmt::Display) -> Problem {
    Problem::new(format!("cannot read `{path}`")).because(error)
}

pub(super) fn unwritable(path: &str, error: std::io::Error) -> Problem {
    let problem = Problem::new(format!("cannot write the copy of `{path}`")).because(&error);
    if error.kind() == std::io::ErrorKind::StorageFull { problem.hint("free some disk space") } else { problem }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// Function that creates an entry at a path.
    type MakeEntry = dyn Fn(&Path);

    /// Creates an empty source folder and an empty target folder.
    fn folders() -> (tempfile::TempDir, std::path::PathBuf, std::path::PathBuf) {
        let root = tempfile::TempDir::new().unwrap();
        let real = root.path().canonicalize().unwrap();
        let (source, target) = (real.join("source"), real.join("target"));
        fs::create_dir(&source).unwrap();
        fs::create_dir(&target).unwrap();
        (root, source, target)
    }

    fn copy(source: &Path, target: &Path) -> Result<BTreeMap<String, FilePin>, String> {
        copy_files(source, target, &mut |_| {}).map(|copied| copied.files).map_err(|problem| problem.text())
    }

    #[test]
    fn files_are_copied_without_special_modes_and_without_version_control() {
        let (_root, source, target) = folders();
        fs::create_dir_all(source.join("a/b")).unwrap();
        fs::create_dir(source.join(".git")).unwrap();
        fs::write(source.join(".git/config"), "x").unwrap();
        fs::write(source.join("a/b/run.sh"), "echo\n").unwrap();
        fs::write(source.join("a/text"), "").unwrap();
        fs::set_permissions(source.join("a/b/run.sh"), fs::Permissions::from_mode(0o4777)).unwrap();
        let files = copy(&source, &target).unwrap();
        assert_eq!(files.keys().collect::<Vec<_>>(), ["a/b/run.sh", "a/text"]);
        assert_eq!(files["a/b/run.sh"].hash, blake3::hash(b"echo\n").to_hex().to_string());
        let mode = |path: &str| fs::metadata(target.join(path)).unwrap().permissions().mode() & 0o7777;
        assert_eq!((mode("a/b/run.sh"), mode("a/text")), (0o700, 0o600));
        assert!(!target.join(".git").exists());
    }

    #[test]
    fn special_files_are_rejected() {
        let entries: [(&MakeEntry, &str); 3] = [
            (&|at| std::os::unix::fs::symlink("/etc/passwd", at).unwrap(), "is a symlink"),
            (&|at| std::os::unix::fs::symlink(".", at).unwrap(), "is a symlink"),
            (&|at| drop(std::os::unix::net::UnixListener::bind(at).unwrap()), "is not a file"),
        ];
        for (make, why) in entries {
            let (_root, source, target) = folders();
            fs::create_dir(source.join("skills")).unwrap();
            make(&source.join("skills/odd"));
            let told = copy(&source, &target).unwrap_err();
            assert!(told.contains("`skills/odd`") && told.contains(why), "{told}");
        }
    }

    #[test]
    fn symlinks_outside_the_parts_that_aye_reads_are_left_out_and_not_followed() {
        let (_root, source, target) = folders();
        fs::write(source.join("CLAUDE.md"), "x").unwrap();
        std::os::unix::fs::symlink("CLAUDE.md", source.join("AGENTS.md")).unwrap();
        std::os::unix::fs::symlink("/etc", source.join("docs")).unwrap();
        let copied = copy_files(&source, &target, &mut |_| {}).unwrap();
        assert_eq!(copied.files.keys().collect::<Vec<_>>(), ["CLAUDE.md"]);
        assert_eq!(copied.left_out, ["AGENTS.md", "docs"]);
        assert!(target.join("AGENTS.md").symlink_metadata().is_err() && target.join("docs").symlink_metadata().is_err());
    }

    #[test]
    fn colliding_and_unusual_names_are_rejected() {
        for (names, why) in [
            (&["a/README.md", "a/readme.md"][..], "differs from another file only in case"),
            (&["a/x\u{1b}[31m"], "the name is not plain text"),
            (&["a/..\\x"], "the name is not plain text"),
        ] {
            let (_root, source, target) = folders();
            fs::create_dir(source.join("a")).unwrap();
            for name in names {
                fs::write(source.join(name), "x").unwrap();
            }
            let told = copy(&source, &target).unwrap_err();
            assert!(told.contains(why) && !told.contains('\u{1b}'), "{told}");
        }
    }

    #[test]
    fn exceeding_a_limit_aborts_the_copy() {
        let (_root, source, target) = folders();
        (0..=MAX_FILES).for_each(|number| fs::write(source.join(number.to_string()), "").unwrap());
        assert!(copy(&source, &target).unwrap_err().contains("more than 2000 files"));
        let (_root, source, target) = folders();
        fs::create_dir_all(source.join(vec!["d"; MAX_DEPTH + 2].join("/"))).unwrap();
        assert!(copy(&source, &target).unwrap_err().contains("12 levels deep"));
        let (_root, source, target) = folders();
        // A sparse file.
        fs::File::create(source.join("large")).unwrap().set_len(FILE_BYTES + 1).unwrap();
        assert!(copy(&source, &target).unwrap_err().contains("cannot read `large`"));
        let (_root, source, target) = folders();
        for number in 0..=TOTAL_BYTES / FILE_BYTES {
            fs::File::create(source.join(number.to_string())).unwrap().set_len(FILE_BYTES).unwrap();
        }
        assert!(copy(&source, &target).unwrap_err().contains("64 MB in total"));
    }

    #[test]
    fn a_file_that_changes_during_the_copy_aborts_it() {
        let (_root, source, target) = folders();
        fs::write(source.join("a"), "old").unwrap();
        let mut change = |path: &str| fs::write(source.join(path), "newer").unwrap();
        let told = copy_files(&source, &target, &mut change).map_err(|problem| problem.text()).unwrap_err();
        assert!(told.contains("`a` changed while it was copied"), "{told}");
    }
}
