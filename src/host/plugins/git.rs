//! Fetches plugins from git repositories. A single commit is fetched with git, and its files are read without a
//! checkout. No code from the repository runs, whether as a hook, a filter or a file system monitor. Submodules are not
//! fetched.

use super::copy::{FILE_BYTES, MAX_ENTRIES, TOTAL_BYTES, is_in_part};
use super::unpacked::Unpacked;
use crate::protocol::Problem;
use crate::sys::timed_command::run_until;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Settings for every git command, which override the user's git configuration.
const SETTINGS: [&str; 10] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.pager=cat",
    "gc.auto=0",
    "maintenance.auto=false",
    "protocol.version=2",
    "fetch.recurseSubmodules=false",
    "submodule.recurse=false",
    "http.lowSpeedLimit=1000",
    "http.lowSpeedTime=60",
];
/// Environment variables that are passed to git when it must not use the user's credentials.
const VARIABLES: [&str; 13] = [
    "PATH",
    "TMPDIR",
    "http_proxy",
    "https_proxy",
    "HTTPS_PROXY",
    "all_proxy",
    "ALL_PROXY",
    "no_proxy",
    "NO_PROXY",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "GIT_SSL_CAINFO",
    "GIT_SSL_CAPATH",
];
/// Additional environment variables that are passed to git when it may use the user's credentials.
const OWN_VARIABLES: [&str; 5] = ["GIT_SSH", "GIT_SSH_COMMAND", "GIT_ASKPASS", "GIT_SSL_CAINFO", "GIT_SSL_CAPATH"];
/// Shell command line that runs git with limits: 256 MB per written file (specified in units of 512 bytes), and 300
/// seconds of CPU time.
const LIMITED: &str = "ulimit -f 524288; ulimit -t 300; exec git \"$@\"";
/// Maximum total time for all git commands of a fetch.
const TOTAL_TIME: Duration = Duration::from_secs(300);
/// Maximum size of stdout and of stderr, in bytes, for a git command whose output is read as a whole.
const OUTPUT_BYTES: u64 = 1 << 20;
/// Maximum size of a commit's file list in bytes.
const LIST_BYTES: u64 = 16 << 20;
const PROGRAM_MODE: &str = "100755";
const SYMLINK_MODE: &str = "120000";

/// A repository, and the revision from which the plugin is taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PluginRepository {
    /// URL or absolute path.
    pub url: String,
    pub scheme: Scheme,
    /// Branch, tag or commit. `None` selects the default branch.
    pub revision: Option<String>,
}

/// Protocol of a repository. git must not use any other protocol, even after a redirect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scheme {
    Https,
    /// Allowed only for servers on this machine.
    Http,
    Ssh,
    /// A directory on this machine.
    File,
}

impl Scheme {
    fn allowed(self) -> &'static str {
        match self {
            Self::Https => "https",
            Self::Http => "http",
            Self::Ssh => "ssh",
            Self::File => "file",
        }
    }
}

/// Fetches a commit into `scratch` and writes its files to `target`, both of which must be empty folders. If `folder`
/// is set, writes only the files in that folder. `has_credentials` specifies whether git may use the user's credential
/// helpers and keys. Returns the commit ID, and the symlinks that were left out.
///
/// # Errors
/// Returns an error if git fails, if the commit contains entries other than files and folders, or if a limit is
/// exceeded.
pub(super) fn fetch(
    repository: &PluginRepository,
    (scratch, target): (&Path, &Path),
    folder: Option<&str>,
    has_credentials: bool,
) -> Result<(String, Vec<String>), Problem> {
    let git = Git { directory: scratch, scheme: repository.scheme, has_credentials, deadline: Instant::now() + TOTAL_TIME };
    git.output(&["init", "--quiet", "--bare", "--template=", "."])?;
    let revision = repository.revision.as_deref().unwrap_or("HEAD");
    let fetch = ["fetch", "--quiet", "--depth=1", "--no-tags", "--no-recurse-submodules", "--", &repository.url, revision];
    git.output(&fetch).map_err(|problem| git.with_advice(problem))?;
    let commit = git.text(&["rev-parse", "--verify", "--quiet", "FETCH_HEAD^{commit}"])?;
    let (files, left_out) = git.files(&commit, folder)?;
    git.write(&files, scratch, &mut Unpacked::new(target))?;
    Ok((commit, left_out))
}

/// A file in a commit.
struct CommitFile {
    path: Vec<u8>,
    id: String,
    is_program: bool,
}

/// Runs git commands in a bare repository.
struct Git<'a> {
    directory: &'a Path,
    scheme: Scheme,
    has_credentials: bool,
    /// Time at which any running process is killed.
    deadline: Instant,
}

impl Git<'_> {
    fn command(&self, arguments: &[&str]) -> Command {
        let mut git = Command::new("/bin/sh");
        git.args(["-c", LIMITED, "sh"]);
        for setting in SETTINGS {
            git.args(["-c", setting]);
        }
        // The repository is named explicitly, because `safe.bareRepository=explicit` in the user's configuration
        // disables the discovery of bare repositories.
        git.arg("--git-dir").arg(self.directory);
        if self.has_credentials {
            let is_foreign = |name: &String| name.starts_with("GIT_") && !OWN_VARIABLES.contains(&name.as_str());
            let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
            names.filter(is_foreign).for_each(|name| _ = git.env_remove(name));
        } else {
            git.args(["-c", "credential.helper="]);
            git.env_clear().envs(VARIABLES.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
            // Use neither the configuration of the user nor `.netrc`.
            git.env("HOME", self.directory).env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
        }
        git.env("GIT_TERMINAL_PROMPT", "0").env("GIT_ALLOW_PROTOCOL", self.scheme.allowed()).env("LC_ALL", "C");
        git.args(arguments).current_dir(self.directory).stdin(Stdio::null());
        git
    }

    fn output(&self, arguments: &[&str]) -> Result<Vec<u8>, Problem> {
        let (status, (output, errors)) = self.run(self.command(arguments).stderr(Stdio::piped()), |child| {
            let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
            std::thread::scope(|scope| {
                let errors = scope.spawn(|| read_bounded(stderr, OUTPUT_BYTES).unwrap_or_default());
                (read_bounded(stdout, OUTPUT_BYTES), errors.join().unwrap_or_default())
            })
        })?;
        if status.success() {
            return output.map_err(|error| failed(&error.to_string()));
        }
        let said = String::from_utf8_lossy(&errors);
        let line = said.lines().find(|line| !line.trim().is_empty()).unwrap_or("git exited without a message");
        Err(failed(line.trim_start_matches("fatal: ").trim_start_matches("error: ")))
    }

    /// Runs a command, at most until the deadline. `read` reads the output of the command.
    fn run<T>(&self, command: &mut Command, read: impl FnOnce(&mut Child) -> T) -> Result<(ExitStatus, T), Problem> {
        let ended = run_until(command, self.deadline, read).map_err(|error| failed(&error.to_string()))?;
        ended.ok_or_else(|| {
            let problem = failed(&format!("git did not finish within {} seconds", TOTAL_TIME.as_secs()));
            problem.hint("check the connection, or clone the repository and add its folder")
        })
    }

    fn text(&self, arguments: &[&str]) -> Result<String, Problem> {
        Ok(String::from_utf8_lossy(&self.output(arguments)?).trim_end().to_owned())
    }

    /// Adds a hint to the error that explains why a fetch failed.
    fn with_advice(&self, problem: Problem) -> Problem {
        if self.has_credentials || self.scheme == Scheme::File {
            return problem.hint("check the repository and the revision");
        }
        problem.hint("if the repository is private, pass `--credentials` to let git use your credential helpers")
    }

    /// Returns the files in a commit, and the symlinks outside the parts that aye reads, which are left out.
    fn files(&self, commit: &str, folder: Option<&str>) -> Result<(Vec<CommitFile>, Vec<String>), Problem> {
        let mut command = self.command(&["ls-tree", "-r", "-l", "-z", "--full-tree", commit]);
        let (status, list) = self.run(command.stderr(Stdio::null()), |child| read_bounded(child.stdout.take(), LIST_BYTES))?;
        let list = match list {
            Ok(list) if status.success() => list,
            Err(error) if error.kind() == ErrorKind::FileTooLarge => return Err(failed("the repository has too many files")),
            Ok(_) | Err(_) => return Err(failed("cannot list the files of the commit")),
        };
        let prefix = folder.map(|folder| format!("{folder}/").into_bytes()).unwrap_or_default();
        let (mut files, mut left_out, mut total) = (Vec::new(), Vec::new(), 0);
        for line in list.split(|byte| *byte == 0).filter(|line| !line.is_empty()) {
            let unexpected = || failed("unexpected list of files");
            let tab = line.iter().position(|byte| *byte == b'\t').ok_or_else(unexpected)?;
            let Some(path) = line[tab + 1..].strip_prefix(prefix.as_slice()) else { continue };
            let fields = String::from_utf8_lossy(&line[..tab]).into_owned();
            let [mode, kind, id, size] = fields.split_ascii_whitespace().collect::<Vec<_>>()[..] else {
                return Err(unexpected());
            };
            let shown = String::from_utf8_lossy(path).escape_debug().to_string();
            if kind == "blob" && mode == SYMLINK_MODE && !is_in_part(&shown) && left_out.len() < MAX_ENTRIES {
                left_out.push(shown);
                continue;
            }
            if kind != "blob" || mode == SYMLINK_MODE {
                let what = if kind == "blob" { "a symlink" } else { "a submodule" };
                return Err(Problem::new(format!("`{shown}` is {what}")).because("a plugin can contain only files and folders"));
            }
            let size: u64 = size.parse().map_err(|_| unexpected())?;
            total += size;
            if size > FILE_BYTES {
                return Err(Problem::new(format!("`{shown}` is larger than {} MB", FILE_BYTES >> 20)));
            }
            if total > TOTAL_BYTES {
                return Err(Problem::new(format!("the files are larger than {} MB in total", TOTAL_BYTES >> 20)));
            }
            files.push(CommitFile { path: path.to_owned(), id: id.to_owned(), is_program: mode == PROGRAM_MODE });
            if files.len() > MAX_ENTRIES {
                return Err(Problem::new(format!("the plugin has more than {MAX_ENTRIES} files and folders")));
            }
        }
        Ok((files, left_out))
    }

    /// Writes the files exactly as they are stored in the commit.
    fn write(&self, files: &[CommitFile], scratch: &Path, unpacked: &mut Unpacked<'_>) -> Result<(), Problem> {
        let cannot = |error: std::io::Error| failed(&error.to_string());
        let ids: String = files.iter().flat_map(|file| [file.id.as_str(), "\n"]).collect();
        // git reads the IDs from a file, so that neither process waits for the other.
        let list = scratch.join("aye-objects");
        std::fs::File::create(&list).and_then(|mut file| file.write_all(ids.as_bytes())).map_err(cannot)?;
        let input = std::fs::File::open(&list).map_err(cannot)?;
        let mut command = self.command(&["cat-file", "--batch"]);
        let (_, written) = self.run(command.stdin(input).stderr(Stdio::null()), |child| match child.stdout.take() {
            // After an error the output is closed, so git ends when it writes again.
            Some(out) => write_objects(files, &mut BufReader::new(out), unpacked),
            None => Err(failed("cannot read git's output")),
        })?;
        written
    }
}

/// Reads output to its end.
///
/// # Errors
/// Returns an error if the output cannot be read or is longer than `max_bytes`.
fn read_bounded(output: Option<impl Read>, max_bytes: u64) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let Some(output) = output else { return Ok(bytes) };
    output.take(max_bytes + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max_bytes {
        return Err(std::io::Error::new(ErrorKind::FileTooLarge, "the output is too long"));
    }
    Ok(bytes)
}

fn write_objects(files: &[CommitFile], out: &mut impl BufRead, unpacked: &mut Unpacked<'_>) -> Result<(), Problem> {
    let cannot = |error: std::io::Error| failed(&error.to_string());
    for file in files {
        let mut header = String::new();
        out.read_line(&mut header).map_err(cannot)?;
        let size = match header.split_ascii_whitespace().collect::<Vec<_>>()[..] {
            [id, "blob", size] if id == file.id => size.parse::<u64>().ok(),
            _ => None,
        };
        let Some(size) = size else { return Err(failed("git returned a different object")) };
        let mut content = out.by_ref().take(size);
        unpacked.add_file(&file.path, file.is_program, &mut content)?;
        // The content of an omitted file is still unread.
        std::io::copy(&mut content, &mut std::io::sink()).map_err(cannot)?;
        let mut end = [0];
        out.read_exact(&mut end).map_err(cannot)?;
    }
    Ok(())
}

fn failed(why: &str) -> Problem {
    Problem::new("git failed").because(crate::text::clean_line(why))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_above_the_limit_is_an_error() {
        assert_eq!(read_bounded(Some(&b"abc"[..]), 3).unwrap(), b"abc");
        assert_eq!(read_bounded(Some(&b"abcd"[..]), 3).unwrap_err().kind(), ErrorKind::FileTooLarge);
    }

    #[test]
    fn git_is_run_with_an_explicit_repository_path() {
        let directory = Path::new("/scratch");
        for has_credentials in [false, true] {
            let git = Git { directory, scheme: Scheme::File, has_credentials, deadline: Instant::now() };
            let command = git.command(&["rev-parse", "HEAD"]);
            let words: Vec<&str> = command.get_args().filter_map(|word| word.to_str()).collect();
            let at = words.iter().position(|word| *word == "--git-dir").unwrap();
            assert_eq!(words[at + 1], "/scratch");
            assert!(words[at..].contains(&"rev-parse"), "an option of git, not of its command: {words:?}");
        }
    }
}
