//! Reduced global git configuration for sandboxed commands: user, line endings and ignore rules, but nothing that starts a
//! program.

use super::config_format::{Files, Variable};
use crate::sys::file::{ReadError, read};
use std::ffi::{OsStr, OsString};
use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

/// Variables that are copied.
const KEPT: &[(&str, &str)] = &[
    ("user", "name"),
    ("user", "email"),
    ("author", "name"),
    ("author", "email"),
    ("committer", "name"),
    ("committer", "email"),
    ("core", "autocrlf"),
    ("core", "eol"),
    ("core", "safecrlf"),
    ("init", "defaultbranch"),
    ("safe", "directory"),
];
const SYSTEM: &str = "/etc/gitconfig";
const CONFIG: &str = "config";
const IGNORE: &str = "ignore";
const MAX_IGNORE_BYTES: u64 = 1 << 20;
/// Time after which an unused configuration is removed.
const UNUSED: Duration = Duration::from_secs(7 * 86_400);

/// Locations of the user's configuration and of the reduced one.
#[derive(Debug, Clone)]
pub(crate) struct Sources {
    pub home: PathBuf,
    /// `GIT_CONFIG_GLOBAL` and `XDG_CONFIG_HOME` of the user.
    pub named: Option<PathBuf>,
    pub xdg: Option<PathBuf>,
    pub workspace: PathBuf,
    /// Private directory of aye.
    pub directory: PathBuf,
}

/// The configuration, created for the first command.
#[derive(Debug, Clone)]
pub(crate) struct GlobalConfig {
    sources: Arc<Sources>,
    made: Arc<Mutex<Option<ConfigFiles>>>,
}

/// The texts of both files, and their directory.
#[derive(Debug, Clone)]
struct ConfigFiles {
    directory: PathBuf,
    config: Vec<u8>,
    ignore: Vec<u8>,
}

impl GlobalConfig {
    pub(crate) fn new(sources: Sources) -> Self {
        Self { sources: Arc::new(sources), made: Arc::default() }
    }

    /// Returns the directory to make visible to commands; `None` if it cannot be created. Performs blocking I/O.
    pub(in crate::tools) fn directory(&self) -> Option<PathBuf> {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let made = made.get_or_insert_with(|| ConfigFiles::locate(&self.sources));
        match made.keep() {
            Ok(()) => Some(made.directory.clone()),
            Err(error) => {
                tracing::warn!(%error, directory = %made.directory.display(), "commands have no global git configuration");
                None
            }
        }
    }

    /// Makes git use the configuration.
    pub(in crate::tools) fn apply(directory: Option<&Path>, environment: &mut Vec<(OsString, OsString)>) {
        let file = directory.map_or_else(|| OsString::from("/dev/null"), |directory| directory.join(CONFIG).into_os_string());
        environment.retain(|(name, _)| name != "GIT_CONFIG_GLOBAL" && name != "GIT_CONFIG_SYSTEM");
        environment.retain(|(name, _)| name != "GIT_CONFIG_NOSYSTEM");
        environment.push(("GIT_CONFIG_GLOBAL".into(), file));
        environment.push(("GIT_CONFIG_NOSYSTEM".into(), "1".into()));
    }
}

impl ConfigFiles {
    fn locate(sources: &Sources) -> Self {
        let mut files = Files::default();
        let home = Some(sources.home.as_path());
        let follows = |condition: &[u8], file: &Path| matches(condition, file, sources);
        let xdg = sources.xdg.clone().unwrap_or_else(|| sources.home.join(".config")).join("git");
        let global = match &sources.named {
            Some(named) => vec![named.clone()],
            None => vec![xdg.join("config"), sources.home.join(".gitconfig")],
        };
        for file in std::iter::once(PathBuf::from(SYSTEM)).chain(global) {
            files.add(&file, home, &follows);
        }
        files.gaps.iter().for_each(|gap| tracing::warn!(gap, "a part of the global git configuration is left out"));
        let ignore = ignored(&files, &xdg.join("ignore"), home);
        let mut config = b"# Made by aye for commands in the sandbox, from your own git configuration.\n".to_vec();
        for (_, variable) in &files.variables {
            let wanted = (variable.section.as_str(), variable.name.as_str());
            if variable.subsection.is_none() && KEPT.contains(&wanted) {
                write_variable(&mut config, variable);
            }
        }
        // The name depends on the content, so that several aye processes share it and it never changes under a running command.
        let mut name = blake3::Hasher::new();
        name.update(&(config.len() as u64).to_le_bytes()).update(&config).update(&ignore);
        let directory = sources.directory.join(&name.finalize().to_hex()[..16]);
        let value = quoted(directory.join(IGNORE).as_os_str().as_bytes());
        config.extend_from_slice(b"[core]\n\texcludesFile = ");
        config.extend_from_slice(&value);
        config.push(b'\n');
        Self { directory, config, ignore }
    }

    /// Updates the time of last use.
    fn note_use(&self) {
        let Ok(file) = OpenOptions::new().append(true).open(self.directory.join(CONFIG)) else { return };
        let is_old =
            file.metadata().and_then(|data| data.modified()).is_ok_and(|at| at.elapsed().is_ok_and(|age| age > UNUSED / 7));
        if is_old && let Err(error) = file.set_modified(SystemTime::now()) {
            tracing::warn!(%error, "cannot update the modification time of the global git configuration of commands");
        }
    }

    /// Writes the missing files.
    fn keep(&self) -> io::Result<()> {
        let files = [(CONFIG, &self.config), (IGNORE, &self.ignore)];
        let is_there = |(name, text): &(&str, &Vec<u8>)| {
            read(&self.directory.join(name), text.len() as u64).is_ok_and(|found| found == **text)
        };
        if files.iter().all(is_there) {
            self.note_use();
            return Ok(());
        }
        if let Some(above) = self.directory.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(above)?;
            remove_unused(above, &self.directory);
        }
        DirBuilder::new().recursive(true).mode(0o700).create(&self.directory)?;
        for (name, text) in files {
            let aside = self.directory.join(format!(".{name}-{}", std::process::id()));
            let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&aside)?;
            file.write_all(text)?;
            std::fs::rename(&aside, self.directory.join(name))?;
        }
        Ok(())
    }
}

/// Returns the user's global ignore rules.
fn ignored(files: &Files, usual: &Path, home: Option<&Path>) -> Vec<u8> {
    let set = files.variables.iter().rev().map(|(_, variable)| variable);
    let named = set
        .filter(|variable| (variable.section.as_str(), variable.name.as_str()) == ("core", "excludesfile"))
        .find_map(|variable| variable.value.as_deref());
    let path = match named {
        Some(value) => match Path::new(OsStr::from_bytes(value)).strip_prefix("~") {
            Ok(below) => home.unwrap_or(Path::new("/")).join(below),
            Err(_) => PathBuf::from(OsStr::from_bytes(value)),
        },
        None => usual.to_owned(),
    };
    let Ok(real) = path.canonicalize() else { return Vec::new() };
    match read(&real, MAX_IGNORE_BYTES) {
        Ok(text) => text,
        Err(error @ (ReadError::TooLarge { .. } | ReadError::Io(_))) => {
            tracing::warn!(%error, file = %real.display(), "the global git ignore file is left out");
            Vec::new()
        }
    }
}

fn write_variable(config: &mut Vec<u8>, variable: &Variable) {
    config.extend_from_slice(format!("[{}]\n\t{}", variable.section, variable.name).as_bytes());
    if let Some(value) = &variable.value {
        config.extend_from_slice(b" = ");
        config.extend_from_slice(&quoted(value));
    }
    config.push(b'\n');
}

/// Quotes a value for a configuration file.
fn quoted(value: &[u8]) -> Vec<u8> {
    let mut quoted = vec![b'"'];
    for byte in value {
        match byte {
            b'\n' => quoted.extend_from_slice(b"\\n"),
            b'"' | b'\\' => quoted.extend_from_slice(&[b'\\', *byte]),
            byte => quoted.push(*byte),
        }
    }
    quoted.push(b'"');
    quoted
}

/// Returns whether an `includeIf` applies. Only conditions on the location of the repository are supported.
fn matches(condition: &[u8], file: &Path, sources: &Sources) -> bool {
    let Ok(condition) = std::str::from_utf8(condition) else { return false };
    let (pattern, any_case) = match (condition.strip_prefix("gitdir:"), condition.strip_prefix("gitdir/i:")) {
        (Some(pattern), _) => (pattern, false),
        (None, Some(pattern)) => (pattern, true),
        (None, None) => return false,
    };
    let base = file.parent().unwrap_or(Path::new("/"));
    let mut pattern = match (pattern.strip_prefix("~/"), pattern.strip_prefix("./")) {
        (Some(below), _) => format!("{}/{below}", sources.home.display()),
        (None, Some(below)) => format!("{}/{below}", base.display()),
        (None, None) if pattern.starts_with('/') => pattern.to_owned(),
        (None, None) => format!("**/{pattern}"),
    };
    if pattern.ends_with('/') {
        pattern.push_str("**");
    }
    let matcher = globset::GlobBuilder::new(&pattern).literal_separator(true).case_insensitive(any_case).build();
    let Ok(matcher) = matcher.map(|glob| glob.compile_matcher()) else { return false };
    let Some(level) = sources.workspace.ancestors().find(|level| level.join(".git").symlink_metadata().is_ok()) else {
        return false;
    };
    let git = level.join(".git");
    matcher.is_match(&git) || git.canonicalize().is_ok_and(|real| matcher.is_match(real))
}

fn remove_unused(above: &Path, own: &Path) {
    let now = SystemTime::now();
    for entry in std::fs::read_dir(above).into_iter().flatten().flatten() {
        let age = entry.path().join(CONFIG).metadata().and_then(|data| data.modified()).ok();
        let is_old = age.and_then(|at| now.duration_since(at).ok()).is_some_and(|age| age > UNUSED);
        if is_old && entry.path() != own {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(tree: &Path) -> Sources {
        let sources = Sources {
            home: tree.join("home"),
            named: None,
            xdg: None,
            workspace: tree.join("code/a"),
            directory: tree.join("data/git"),
        };
        for directory in ["home", "code/a/.git"] {
            std::fs::create_dir_all(tree.join(directory)).unwrap();
        }
        sources
    }

    fn text(config: &GlobalConfig) -> String {
        std::fs::read_to_string(config.directory().unwrap().join(CONFIG)).unwrap()
    }

    #[test]
    fn conditions_on_where_the_repository_is_are_followed_and_others_are_not() {
        let tree = tempfile::tempdir().unwrap();
        let tree = tree.path().canonicalize().unwrap();
        let sources = sources(&tree);
        std::fs::create_dir_all(tree.join("home/code")).unwrap();
        let file = tree.join("home/.gitconfig");
        let is = |condition: &str| matches(condition.as_bytes(), &file, &sources);
        let above = tree.display();
        for condition in [
            format!("gitdir:{above}/code/"),
            "gitdir:code/".to_owned(),
            "gitdir/i:CODE/".to_owned(),
            "gitdir:../code/".to_owned(),
        ] {
            let wanted = !condition.contains("..");
            assert_eq!(is(&condition), wanted, "{condition}");
        }
        for condition in ["gitdir:~/code/", "gitdir:other/", "onbranch:main", "hasconfig:remote.*.url:x", ""] {
            assert!(!is(condition), "{condition}");
        }
    }

    #[test]
    fn it_is_made_again_where_it_is_missing_and_keeps_its_bounds() {
        let tree = tempfile::tempdir().unwrap();
        let sources = sources(tree.path());
        let home = sources.home.clone();
        std::fs::write(
            home.join(".gitconfig"),
            "[user]\nname = \"a\\n\\\"b\"\nemail\n[user \"x\"]\nname = y\n[core]\npager = evil\n",
        )
        .unwrap();
        nix::unistd::mkfifo(&home.join("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        std::fs::write(home.join("ignored"), "x\n").unwrap();
        let config = GlobalConfig::new(sources.clone());
        let first = text(&config);
        assert!(first.contains("name = \"a\\n\\\"b\"") && first.contains("email\n") && !first.contains("evil"), "{first}");
        assert!(!first.contains("\"y\""), "{first}");
        std::fs::remove_dir_all(config.directory().unwrap()).unwrap();
        assert_eq!(text(&config), first);
        std::fs::write(home.join(".gitconfig"), "[include]\npath = pipe\n[core]\nexcludesFile = ~/ignored\n").unwrap();
        assert_eq!(text(&config), first, "what it was at the first command counts");
        let next = GlobalConfig::new(sources).directory().unwrap();
        assert_ne!(next, config.directory().unwrap());
        assert_eq!(std::fs::read_to_string(next.join(IGNORE)).unwrap(), "x\n");
    }
}
