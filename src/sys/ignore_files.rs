//! Ignore files of a walk. They come from the repository: reading a symlink to a device could continue forever, and a
//! pipe would block, so aye checks them before it opens them.

use ignore::{DirEntry, WalkBuilder};
use std::fs::Metadata;
use std::path::{Path, PathBuf};

/// Maximum size in bytes. Hand-written ignore files are never larger.
const MAX_BYTES: u64 = 1 << 20;
/// Name of the ignore file that only aye applies.
const OWN_LIST: &str = ".ayeignore";
/// Maximum length in bytes of the line in which git stores the location of its data.
const POINTER_BYTES: u64 = 4096;

/// Returns the name of a file in a directory that a walk would open but must not.
pub(crate) fn trap(directory: &Path, may_read: &dyn Fn(&Path) -> bool) -> Option<String> {
    let named =
        [".ignore", ".gitignore", OWN_LIST].into_iter().find(|name| !is_plain(&directory.join(name), MAX_BYTES, may_read));
    named.map(str::to_owned).or_else(|| is_unsafe_exclude_file(&directory.join(".git"), may_read).then(|| ".git".to_owned()))
}

/// Checks the start of a search, and all directories above it, in the same way.
pub(crate) fn unsafe_ignore_file_above(start: &Path, may_read: &dyn Fn(&Path) -> bool) -> Option<PathBuf> {
    start.ancestors().find_map(|directory| Some(directory.join(trap(directory, may_read)?)))
}

/// Returns the text of aye's own ignore file in a directory, if there is one.
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
    /// The ignore files of git, and `.ayeignore`.
    GitsAndOwn,
}

/// Keeps a walk from opening ignore files that are not regular files of a usual size. `enters`: selects the entries
/// that the walk visits otherwise.
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

/// Returns whether the user's global ignore file, and the git configuration that names it, are regular files of a usual
/// size.
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

/// Returns whether the exclude file of a `.git` must not be opened. A work tree stores this file elsewhere.
fn is_unsafe_exclude_file(git: &Path, may_read: &dyn Fn(&Path) -> bool) -> bool {
    let Ok(metadata) = git.metadata() else { return false };
    if !metadata.is_file() {
        return !is_plain(&git.join("info/exclude"), MAX_BYTES, may_read);
    }
    // Resolved as the walk does: relative to the directory where aye was started.
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

/// Returns the first line of a small file.
fn line(path: &Path, may_read: &dyn Fn(&Path) -> bool) -> Option<String> {
    if !is_plain(path, POINTER_BYTES, may_read) {
        return None;
    }
    let bytes = crate::sys::file::read(&path.canonicalize().ok()?, POINTER_BYTES).ok()?;
    String::from_utf8_lossy(&bytes).lines().next().map(str::to_owned)
}

/// Returns whether a path is missing, or a small file that the policy allows to be read.
fn is_plain(path: &Path, max_bytes: u64, may_read: &dyn Fn(&Path) -> bool) -> bool {
    let small = |metadata: &Metadata| metadata.is_file() && metadata.len() <= max_bytes;
    match path.symlink_metadata() {
        Ok(metadata) if metadata.is_symlink() => match path.canonicalize() {
            Ok(real) => may_read(&real) && real.metadata().is_ok_and(|metadata| small(&metadata)),
            Err(_) => true,
        },
        // A directory can be opened and gives an error.
        Ok(metadata) => metadata.is_dir() || small(&metadata),
        Err(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::stat::Mode;

    /// Returns the entries that a walk finds, within a generous time limit.
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
