//! Ignore files that apply to a directory walk. Because they come from the repository, aye checks them before they are
//! opened: a symlink to a device could be read forever, and a pipe would block.

use ignore::{DirEntry, WalkBuilder};
use std::fs::Metadata;
use std::path::{Path, PathBuf};

/// Maximum size of an ignore file in bytes. Hand-written ignore files are smaller.
const MAX_BYTES: u64 = 1 << 20;
/// Name of the ignore file that only aye applies.
const OWN_LIST: &str = ".ayeignore";
/// Maximum length in bytes of the line in which git stores the path of its data directory.
const POINTER_BYTES: u64 = 4096;

/// Returns the name of an ignore file in a directory that a walk would open but must not, if there is one.
pub(crate) fn trap(directory: &Path, may_read: &dyn Fn(&Path) -> bool) -> Option<String> {
    let named =
        [".ignore", ".gitignore", OWN_LIST].into_iter().find(|name| !is_plain(&directory.join(name), MAX_BYTES, may_read));
    named.map(str::to_owned).or_else(|| is_unsafe_exclude_file(&directory.join(".git"), may_read).then(|| ".git".to_owned()))
}

/// Checks the start of a search and every directory above it, as [`trap`] does. Returns the path of the first file that
/// must not be opened.
pub(crate) fn unsafe_ignore_file_above(start: &Path, may_read: &dyn Fn(&Path) -> bool) -> Option<PathBuf> {
    start.ancestors().find_map(|directory| Some(directory.join(trap(directory, may_read)?)))
}

/// Returns the content of aye's own ignore file in a directory, if there is one.
///
/// # Errors
/// Returns the reason if the file cannot be used.
pub(crate) fn own_list(directory: &Path) -> Result<Option<String>, String> {
    let path = directory.join(OWN_LIST);
    if path.symlink_metadata().is_err() {
        return Ok(None);
    }
    let stays = |real: &Path| real.starts_with(directory);
    let real = path.canonicalize().ok().filter(|real| is_plain(&path, MAX_BYTES, &stays) && real.is_file());
    let bytes = real.and_then(|real| crate::sys::file::read(&real, MAX_BYTES).ok());
    let bytes = bytes.ok_or("the path is not a regular file of at most 1 MB inside the workspace")?;
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}

/// Ignore files that a walk applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lists {
    Gits,
    /// Git's ignore files and `.ayeignore`.
    GitsAndOwn,
}

/// Prevents a walk from opening ignore files unless they are regular files of a plausible size. `enters` selects the
/// entries that the walk would visit without this check.
pub(crate) fn guard(
    walk: &mut WalkBuilder,
    start: &Path,
    lists: Lists,
    enters: impl Fn(&DirEntry) -> bool + Send + Sync + 'static,
) {
    let rules = unsafe_ignore_file_above(start, &|_| true).is_none();
    if rules && lists == Lists::GitsAndOwn {
        walk.add_custom_ignore_filename(OWN_LIST);
    }
    if !rules {
        walk.parents(false).ignore(false).git_ignore(false).git_exclude(false);
    }
    if !is_global_plain() {
        walk.git_global(false);
    }
    walk.filter_entry(move |entry| {
        let goes_in = entry.depth() > 0 && entry.file_type().is_some_and(|kind| kind.is_dir());
        enters(entry) && !(rules && goes_in && trap(entry.path(), &|_| true).is_some())
    });
}

/// Returns whether the user's global ignore file, and the git configuration files that may specify its path, are either
/// missing or regular files of a plausible size.
pub(crate) fn is_global_plain() -> bool {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let home = variable("HOME");
    let config = variable("XDG_CONFIG_HOME").or_else(|| home.as_ref().map(|home| home.join(".config")));
    let files = [
        variable("GIT_CONFIG_GLOBAL"),
        home.map(|home| home.join(".gitconfig")),
        config.map(|config| config.join("git/config")),
        Some(variable("GIT_CONFIG_SYSTEM").unwrap_or_else(|| PathBuf::from("/etc/gitconfig"))),
    ];
    let is_plain = |path: &Path| is_plain(path, MAX_BYTES, &|_| true);
    files.iter().flatten().all(|file| is_plain(file))
        && ignore::gitignore::gitconfig_excludes_path().is_none_or(|list| is_plain(&list))
}

/// Returns whether the exclude file that belongs to a `.git` entry must not be opened. In a linked work tree, `.git` is
/// a file and the exclude file is elsewhere.
fn is_unsafe_exclude_file(git: &Path, may_read: &dyn Fn(&Path) -> bool) -> bool {
    let Ok(metadata) = git.metadata() else { return false };
    if !metadata.is_file() {
        return !is_plain(&git.join("info/exclude"), MAX_BYTES, may_read);
    }
    // The walk resolves this path in the same way: relative to the directory in which aye was started.
    let Some(line) = line(git, may_read) else { return true };
    let Some(data) = line.strip_prefix("gitdir: ").map(PathBuf::from) else { return false };
    let pointer = data.join("commondir");
    if pointer.symlink_metadata().is_err() {
        return false;
    }
    let Some(line) = self::line(&pointer, may_read) else { return true };
    let common = if line.starts_with('.') { data.join(line) } else { PathBuf::from(line) };
    !is_plain(&common.join("info/exclude"), MAX_BYTES, may_read)
}

/// Returns the first line of a small file, or `None` if the file cannot or must not be read.
fn line(path: &Path, may_read: &dyn Fn(&Path) -> bool) -> Option<String> {
    if !is_plain(path, POINTER_BYTES, may_read) {
        return None;
    }
    let bytes = crate::sys::file::read(&path.canonicalize().ok()?, POINTER_BYTES).ok()?;
    String::from_utf8_lossy(&bytes).lines().next().map(str::to_owned)
}

/// Returns whether a path is missing, a directory, or a small file. The target of a symlink must also be one that the
/// policy allows aye to read.
fn is_plain(path: &Path, max_bytes: u64, may_read: &dyn Fn(&Path) -> bool) -> bool {
    let small = |metadata: &Metadata| metadata.is_file() && metadata.len() <= max_bytes;
    match path.symlink_metadata() {
        Ok(metadata) if metadata.is_symlink() => match path.canonicalize() {
            Ok(real) => may_read(&real) && real.metadata().is_ok_and(|metadata| small(&metadata)),
            Err(_) => true,
        },
        // Opening a directory to read it fails, which is harmless.
        Ok(metadata) => metadata.is_dir() || small(&metadata),
        Err(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::stat::Mode;

    /// Returns the files that a walk finds. Fails if the walk does not finish within a generous time limit.
    fn found(root: &Path) -> Vec<String> {
        let (send, receive) = std::sync::mpsc::channel();
        let start = root.to_owned();
        std::thread::spawn(move || {
            let mut walk = WalkBuilder::new(&start);
            walk.hidden(false).require_git(false);
            guard(&mut walk, &start, Lists::GitsAndOwn, |entry| entry.file_name() != ".git");
            let files = walk.build().filter_map(Result::ok).filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()));
            let names = files.filter_map(|entry| Some(entry.path().strip_prefix(&start).ok()?.to_string_lossy().into_owned()));
            let _ = send.send(names.collect::<Vec<_>>());
        });
        let mut names = receive.recv_timeout(std::time::Duration::from_secs(60)).expect("the walk ends");
        names.sort();
        names
    }

    #[test]
    fn a_pipe_in_place_of_an_ignore_file_does_not_block_a_walk() {
        for name in [".gitignore", ".ignore", ".ayeignore", ".git/info/exclude", "a/.gitignore", "a/.ignore"] {
            let directory = tempfile::tempdir().unwrap();
            let root = directory.path().canonicalize().unwrap();
            for file in ["x", "a/y", ".git/HEAD"] {
                std::fs::create_dir_all(root.join(file).parent().unwrap()).unwrap();
                std::fs::write(root.join(file), "x").unwrap();
            }
            std::fs::create_dir_all(root.join(name).parent().unwrap()).unwrap();
            nix::unistd::mkfifo(&root.join(name), Mode::S_IRWXU).unwrap();
            assert!(found(&root).contains(&"x".to_owned()), "{name}");
        }
    }

    #[test]
    fn huge_ignore_files_and_links_to_devices_are_not_read() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        std::fs::create_dir(root.join("a")).unwrap();
        std::fs::write(root.join("x"), "x").unwrap();
        std::fs::File::create(root.join(".gitignore")).unwrap().set_len(1 << 40).unwrap();
        std::os::unix::fs::symlink("/dev/zero", root.join("a/.gitignore")).unwrap();
        assert_eq!(found(&root), [".gitignore", "x"]);
    }
}
