//! Plugin sources, which are folders, git repositories and archives.

use super::archive::{self, ARCHIVE_BYTES};
use super::git::{self, PluginRepository, Scheme};
use super::manifest::has_manifest;
use crate::host::download::download_following;
use crate::protocol::Problem;
use crate::sys::http::Timeouts;
use crate::text;
use sha2::{Digest, Sha256};
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

/// Timeout for downloading an archive.
const DOWNLOAD_TIME: Duration = Duration::from_secs(300);
/// File name extensions that identify archives.
const ARCHIVES: [&str; 4] = [".tar.gz", ".tgz", ".tar", ".zip"];
/// Number of digits in a commit ID.
const COMMIT_DIGITS: usize = 40;
/// Maximum length of a revision name, in bytes.
const REVISION_BYTES: usize = 200;

/// Source of a plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PluginSource {
    kind: SourceKind,
    /// Folder that contains the plugin, inside a repository or an archive.
    folder: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum SourceKind {
    Folder(PathBuf),
    Repository(PluginRepository),
    File(PathBuf),
    Url(String),
}

/// Fetched files of a plugin, and IDs that identify the fetched version.
pub(crate) struct FetchedPlugin {
    /// Folder that contains the plugin's files.
    pub root: PathBuf,
    /// Commit ID, if the source is a repository.
    pub commit: Option<String>,
    /// SHA-256 hash, if the source is an archive.
    pub archive_hash: Option<String>,
    /// Symlinks that were not fetched, by path.
    pub left_out: Vec<String>,
}

impl PluginSource {
    /// Parses a source given by the user, which is a path or a URL, optionally followed by `#BRANCH` or `@COMMIT`.
    /// `folder` is the plugin's folder inside a repository or an archive.
    ///
    /// # Errors
    /// Returns an error if the source does not exist, or if its form is not supported.
    pub(crate) fn parse(given: &str, folder: Option<&str>, workspace: &Path) -> Result<Self, Problem> {
        let kind = kind(given, workspace)?;
        let folder = folder.map(|folder| folder.trim_end_matches('/')).filter(|folder| !matches!(*folder, "" | "."));
        if folder.is_some_and(|folder| !Path::new(folder).components().all(|part| matches!(part, Component::Normal(_)))) {
            return Err(Problem::new("`--path` must be a folder inside the repository or the archive"));
        }
        match kind {
            SourceKind::Folder(path) => {
                Ok(Self { kind: SourceKind::Folder(folder.map_or(path.clone(), |folder| path.join(folder))), folder: None })
            }
            kind => Ok(Self { kind, folder: folder.map(str::to_owned) }),
        }
    }

    /// Returns the source in a text form that does not depend on the working directory.
    pub(crate) fn text(&self) -> String {
        match &self.kind {
            SourceKind::Folder(path) | SourceKind::File(path) => path.display().to_string(),
            SourceKind::Url(url) => url.clone(),
            SourceKind::Repository(PluginRepository { url, revision, .. }) => match revision {
                Some(revision) if is_commit(revision) => format!("{url}@{revision}"),
                Some(revision) => format!("{url}#{revision}"),
                None => url.clone(),
            },
        }
    }

    /// Returns the plugin's folder inside a repository or an archive.
    pub(crate) fn folder(&self) -> Option<&str> {
        self.folder.as_deref()
    }

    /// Returns whether fetching needs a scratch folder.
    pub(crate) fn needs_scratch(&self) -> bool {
        !matches!(self.kind, SourceKind::Folder(_))
    }

    /// Returns the path of the source if it is a folder.
    pub(crate) fn directory(&self) -> Option<&Path> {
        match &self.kind {
            SourceKind::Folder(path) => Some(path),
            SourceKind::Repository(_) | SourceKind::File(_) | SourceKind::Url(_) => None,
        }
    }

    /// Fetches the files without running any of them. They are written to `scratch`, which must be an empty folder,
    /// unless the source is a folder, which is used in place. `has_credentials` specifies whether git may use the
    /// user's credential helpers and keys.
    ///
    /// # Errors
    /// Returns an error if the files cannot be fetched, if the source contains anything other than files and folders,
    /// or if a limit is exceeded.
    pub(crate) fn fetch(&self, scratch: &Path, has_credentials: bool, timeouts: Timeouts) -> Result<FetchedPlugin, Problem> {
        let bytes = match &self.kind {
            SourceKind::Folder(path) => {
                return Ok(FetchedPlugin { root: path.clone(), commit: None, archive_hash: None, left_out: Vec::new() });
            }
            SourceKind::Repository(repository) => return self.fetch_commit(repository, scratch, has_credentials),
            SourceKind::File(path) => {
                crate::sys::file::read(path, ARCHIVE_BYTES).map_err(|error| Problem::new(error.to_string()))?
            }
            SourceKind::Url(url) => {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
                let runtime = runtime.map_err(|error| Problem::new("cannot download the archive").because(error))?;
                let max_bytes = usize::try_from(ARCHIVE_BYTES).unwrap_or(usize::MAX);
                runtime.block_on(download_following(url, timeouts, (max_bytes, DOWNLOAD_TIME)))?
            }
        };
        let root = new_folder(scratch, "files")?;
        archive::unpack(&bytes, &root)?;
        let hash = text::hex(&Sha256::digest(&bytes));
        let root = only_folder(root);
        let root = self.folder.as_ref().map_or(root.clone(), |folder| root.join(folder));
        if !root.is_dir() {
            return Err(self.missing_folder("archive"));
        }
        Ok(FetchedPlugin { root, commit: None, archive_hash: Some(hash), left_out: Vec::new() })
    }

    fn fetch_commit(
        &self,
        repository: &PluginRepository,
        scratch: &Path,
        has_credentials: bool,
    ) -> Result<FetchedPlugin, Problem> {
        if repository.scheme == Scheme::Ssh && !has_credentials {
            let problem = Problem::new("ssh needs your keys");
            return Err(problem.hint("pass `--credentials` to let git use them, or use the https URL of the repository"));
        }
        let (objects, root) = (new_folder(scratch, "objects")?, new_folder(scratch, "files")?);
        let (commit, left_out) = git::fetch(repository, (&objects, &root), self.folder(), has_credentials)?;
        check_commit(repository.revision.as_deref(), &commit)?;
        if std::fs::read_dir(&root).is_ok_and(|mut entries| entries.next().is_none()) {
            return Err(self.missing_folder("commit"));
        }
        Ok(FetchedPlugin { root, commit: Some(commit), archive_hash: None, left_out })
    }

    fn missing_folder(&self, place: &str) -> Problem {
        match &self.folder {
            Some(folder) => Problem::new(format!("the {place} has no folder `{}`", folder.escape_debug())),
            None => Problem::new(format!("the {place} has no files")),
        }
    }
}

fn new_folder(scratch: &Path, name: &str) -> Result<PathBuf, Problem> {
    let path = scratch.join(name);
    std::fs::create_dir(&path).map_err(|error| Problem::new("cannot create a temporary folder").because(error))?;
    Ok(path)
}

/// If `root` contains no manifest and only a single subfolder, returns that subfolder. Repository archives contain all
/// files in one folder.
fn only_folder(root: PathBuf) -> PathBuf {
    if has_manifest(&root) {
        return root;
    }
    let mut entries = std::fs::read_dir(&root).into_iter().flatten().filter_map(Result::ok).map(|entry| entry.path());
    match (entries.next(), entries.next()) {
        (Some(only), None) if only.is_dir() => only,
        _ => root,
    }
}

fn kind(given: &str, workspace: &Path) -> Result<SourceKind, Problem> {
    if let Some(found) = local(given, workspace)? {
        return Ok(found);
    }
    let (address, revision) = with_revision(given)?;
    if let Some((scheme, rest)) = address.split_once("://") {
        return remote(address, scheme, rest, revision);
    }
    if is_ssh_address(address) {
        return Ok(SourceKind::Repository(PluginRepository { url: address.to_owned(), scheme: Scheme::Ssh, revision }));
    }
    if revision.is_some() {
        let full = workspace.join(address);
        let path = full.canonicalize().map_err(|error| Problem::new(format!("`{address}`")).because(error))?;
        let url = path.to_str().ok_or_else(|| Problem::new("the path is not plain text"))?.to_owned();
        return Ok(SourceKind::Repository(PluginRepository { url, scheme: Scheme::File, revision }));
    }
    let problem = Problem::new("there is no such folder or archive");
    Err(problem.hint("name a folder, an archive (.tar.gz or .zip), or the URL of a git repository"))
}

/// Returns the source if the given path exists, or `Ok(None)` if it does not.
fn local(given: &str, workspace: &Path) -> Result<Option<SourceKind>, Problem> {
    let Ok(real) = workspace.join(given).canonicalize() else { return Ok(None) };
    if real.is_dir() {
        let is_bare = !has_manifest(&real) && real.join("objects").is_dir() && real.join("HEAD").is_file();
        let url = real.to_str().filter(|_| is_bare).map(str::to_owned);
        let repository = |url| SourceKind::Repository(PluginRepository { url, scheme: Scheme::File, revision: None });
        return Ok(Some(url.map_or(SourceKind::Folder(real), repository)));
    }
    if real.is_file() {
        return Ok(Some(SourceKind::File(real)));
    }
    Err(Problem::new("the path is neither a folder nor a file"))
}

fn remote(address: &str, scheme: &str, rest: &str, revision: Option<String>) -> Result<SourceKind, Problem> {
    let scheme = match scheme {
        "https" => Scheme::Https,
        "http" => Scheme::Http,
        "ssh" => Scheme::Ssh,
        other => {
            let problem = Problem::new(format!("the scheme `{}:` is not supported", other.escape_debug()));
            return Err(problem.hint("use an https URL, an ssh URL or a path"));
        }
    };
    let host = rest.split('/').next().unwrap_or_default();
    let credentials = host.rsplit_once('@').map(|(user, _)| user);
    if host.is_empty() || host.starts_with('-') || address.chars().any(|letter| letter.is_whitespace() || letter.is_control()) {
        return Err(Problem::new("the URL is not valid"));
    }
    if credentials.is_some_and(|user| user.contains(':') || user.starts_with('-') || scheme != Scheme::Ssh) {
        let problem = Problem::new("the URL contains credentials");
        return Err(problem.hint("remove them; `--credentials` lets git use your credential helpers"));
    }
    if scheme != Scheme::Ssh {
        crate::config::check_list_url(address)?;
    }
    let path = rest.split('?').next().unwrap_or_default().to_lowercase();
    if scheme != Scheme::Ssh && revision.is_none() && ARCHIVES.iter().any(|end| path.ends_with(end)) {
        return Ok(SourceKind::Url(address.to_owned()));
    }
    Ok(SourceKind::Repository(PluginRepository { url: address.to_owned(), scheme, revision }))
}

/// Splits `ADDRESS#BRANCH` or `ADDRESS@COMMIT` into address and revision.
fn with_revision(given: &str) -> Result<(&str, Option<String>), Problem> {
    if let Some((address, revision)) = given.rsplit_once('#') {
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "._/-+".contains(letter);
        let is_valid = !revision.is_empty()
            && revision.len() <= REVISION_BYTES
            && !revision.starts_with(['-', '+'])
            && !revision.contains("..")
            && revision.chars().all(is_plain);
        if !is_valid {
            return Err(Problem::new(format!("`{}` is not the name of a branch, a tag or a commit", revision.escape_debug())));
        }
        return Ok((address, Some(revision.to_owned())));
    }
    match given.rsplit_once('@') {
        Some((address, commit)) if is_commit(commit) => Ok((address, Some(commit.to_owned()))),
        Some((address, part))
            if !address.is_empty() && part.len() >= 7 && part.chars().all(|digit| digit.is_ascii_hexdigit()) =>
        {
            let problem = Problem::new(format!("`{part}` is not a full commit ID"));
            Err(problem.hint("use all 40 digits"))
        }
        _ => Ok((given, None)),
    }
}

/// Returns whether the text is a commit ID.
fn is_commit(text: &str) -> bool {
    text.len() == COMMIT_DIGITS && text.chars().all(|digit| digit.is_ascii_hexdigit())
}

/// If the revision was given as a commit ID, checks that exactly this commit was fetched, rather than another object or
/// a branch with the same name.
fn check_commit(revision: Option<&str>, fetched: &str) -> Result<(), Problem> {
    match revision.filter(|revision| is_commit(revision)) {
        Some(asked) if !asked.eq_ignore_ascii_case(fetched) => {
            let problem = Problem::new(format!("the repository returned a different commit than `{asked}`"));
            Err(problem.because(text::clean_line(fetched)).hint("check the commit ID"))
        }
        Some(_) | None => Ok(()),
    }
}

/// Returns whether an address has the form `USER@HOST:PATH`.
fn is_ssh_address(address: &str) -> bool {
    let Some((user, rest)) = address.split_once('@') else { return false };
    let Some((host, path)) = rest.split_once(':') else { return false };
    let is_name = |text: &str| {
        !text.is_empty()
            && !text.starts_with('-')
            && text.chars().all(|letter| letter.is_ascii_alphanumeric() || "._-".contains(letter))
    };
    is_name(user) && is_name(host) && !path.is_empty() && !path.starts_with('-') && !path.chars().any(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_revision_after_an_at_sign_must_be_a_full_commit_id() {
        let address = "https://example.org/x.git";
        for digits in ["0123456789abcdef0123456789abcdef01234567", "0123456789ABCDEF0123456789ABCDEF01234567"] {
            let given = format!("{address}@{digits}");
            assert_eq!(with_revision(&given).unwrap(), (address, Some(digits.to_owned())));
        }
        for length in [7, 39, 41, 64] {
            let told = with_revision(&format!("{address}@{}", "a".repeat(length))).unwrap_err().text();
            assert!(told.contains("is not a full commit ID"), "{length}: {told}");
        }
    }

    #[test]
    fn the_fetched_commit_must_be_the_requested_one() {
        let (named, other) = ("0123456789abcdef0123456789abcdef01234567", "f123456789abcdef0123456789abcdef01234567");
        for revision in [None, Some("main"), Some(named), Some(named.to_uppercase().as_str())] {
            check_commit(revision, named).unwrap();
        }
        let told = check_commit(Some(named), other).unwrap_err().text();
        assert!(told.contains("a different commit") && told.contains(named) && told.contains(other), "{told}");
    }
}
