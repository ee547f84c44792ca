//! Desktop integration: opens a file or a web address, or shows a file's location. The path is passed to a program as a
//! single argument, never through a shell or a URL.

use super::process::{EnvironmentSelection, command_environment};
use super::programs::find_outside;
use nix::unistd::setsid;
use std::ffi::OsString;
use std::fmt::Write;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::process::Command;

/// Time to wait for the program. A program that runs in the foreground continues to run after that.
const TIMEOUT: Duration = Duration::from_secs(5);
const FILE_MANAGER: &str = "org.freedesktop.FileManager1";

/// Request to the desktop. Paths are absolute, so no program can mistake one for an option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Opening {
    /// Opens a file with its default application.
    Open(PathBuf),
    /// Selects a file in the file manager, or at least shows the directory that contains it.
    Reveal(PathBuf),
    /// Opens a web address in the browser.
    Visit(Address),
}

/// A web address that no program can mistake for a command or an option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Address(String);

impl Address {
    /// Parses an `http` or `https` URL. Returns `None` if the URL contains spaces, quotes or other special characters.
    pub(crate) fn parse(given: &str) -> Option<Self> {
        let url = url::Url::parse(given).ok().filter(|url| matches!(url.scheme(), "http" | "https"))?;
        let plain = url.as_str().bytes().all(|byte| byte.is_ascii_graphic() && !b"\"'`\\<>".contains(&byte));
        (plain && url.has_host()).then(|| Self(url.into()))
    }
}

/// How a request to the desktop was carried out.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum OpenerResult {
    /// The program with this name reported success or is still running.
    By(String),
    /// The program with this name shows the directory but does not select the file.
    OnlyItsDirectory(String),
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum OpenError {
    #[error("no display: neither DISPLAY nor WAYLAND_DISPLAY is set; tell the user the path")]
    NoDisplay,
    #[error("`{0}` is not in PATH; install it (usually the package xdg-utils), or tell the user the path")]
    NoOpener(&'static str),
    #[error("cannot start `{program}`: {message}; tell the user the path")]
    NotStarted { program: String, message: String },
    #[error("`{program}` failed with {code}{meaning}; tell the user the path")]
    Failed { program: String, code: String, meaning: &'static str },
}

/// Kind of operating system, which determines the available desktop programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum System {
    Freedesktop,
    Mac,
    Windows,
}

impl System {
    fn current() -> Self {
        if cfg!(target_os = "macos") {
            Self::Mac
        } else if cfg!(target_os = "windows") {
            Self::Windows
        } else {
            Self::Freedesktop
        }
    }

    fn opener(self) -> &'static str {
        match self {
            Self::Freedesktop => "xdg-open",
            Self::Mac => "open",
            Self::Windows => "explorer.exe",
        }
    }
}

/// A program with its arguments, and whether it shows only the directory.
#[derive(Debug, PartialEq, Eq)]
struct OpenerProgram {
    program: &'static str,
    words: Vec<OsString>,
    only_directory: bool,
}

/// Search path and environment for the desktop programs.
pub(crate) struct Desktop {
    environment: Vec<(OsString, OsString)>,
    path: OsString,
}

impl Desktop {
    /// Derives the environment from aye's own, leaving out secrets and programs in the workspace.
    pub(crate) fn find(workspace: &Path, secret_names: &[String], is_secret: &dyn Fn(&str) -> bool) -> Self {
        let mut environment = command_environment(std::env::vars_os(), &EnvironmentSelection::Inherit, secret_names, is_secret);
        let path = find_outside(&std::env::var_os("PATH").unwrap_or_default(), &[workspace.to_owned()]);
        // Programs that this program starts use the same search path.
        environment.retain(|(name, _)| name != "PATH");
        environment.push(("PATH".into(), path.clone()));
        Self { environment, path }
    }

    fn has(&self, name: &str) -> bool {
        self.environment.iter().any(|(known, value)| known == name && !value.is_empty())
    }

    fn program(&self, name: &str) -> Option<PathBuf> {
        std::env::split_paths(&self.path).map(|place| place.join(name)).find(|path| is_program(path))
    }

    /// Carries out a request. The program then runs independently of aye and of aye's terminal.
    pub(crate) async fn perform(&self, opening: &Opening) -> Result<OpenerResult, OpenError> {
        let system = System::current();
        if system == System::Freedesktop && !self.has("DISPLAY") && !self.has("WAYLAND_DISPLAY") {
            return Err(OpenError::NoDisplay);
        }
        let bus = system != System::Freedesktop || self.has("DBUS_SESSION_BUS_ADDRESS");
        let mut failed = OpenError::NoOpener(system.opener());
        for attempt in attempts(system, opening, bus) {
            let Some(program) = self.program(attempt.program) else { continue };
            match self.start(&program, &attempt).await {
                Ok(()) if attempt.only_directory => return Ok(OpenerResult::OnlyItsDirectory(attempt.program.to_owned())),
                Ok(()) => return Ok(OpenerResult::By(attempt.program.to_owned())),
                Err(error) => failed = error,
            }
        }
        Err(failed)
    }

    async fn start(&self, program: &Path, attempt: &OpenerProgram) -> Result<(), OpenError> {
        let named = attempt.program.to_owned();
        let mut command = Command::new(program);
        command.args(&attempt.words).env_clear().envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.current_dir("/").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        detach(&mut command);
        let not_started = |error: io::Error| OpenError::NotStarted { program: named.clone(), message: error.to_string() };
        let mut child = command.spawn().map_err(not_started)?;
        let Ok(ended) = tokio::time::timeout(TIMEOUT, child.wait()).await else { return Ok(()) };
        let status = ended.map_err(not_started)?;
        // Explorer exits with 1 even on success.
        if status.success() || System::current() == System::Windows {
            return Ok(());
        }
        let code = status.code().map_or_else(|| "a signal".to_owned(), |code| format!("exit code {code}"));
        let meaning = match (attempt.program, status.code()) {
            ("xdg-open", Some(2)) => " (file not found)",
            ("xdg-open", Some(3)) => " (no application is configured for this file type)",
            ("xdg-open", Some(4)) => " (the application failed)",
            _ => "",
        };
        Err(OpenError::Failed { program: named, code, meaning })
    }
}

/// Returns the programs to try, most preferred first.
fn attempts(system: System, opening: &Opening, bus: bool) -> Vec<OpenerProgram> {
    let attempt = |program, words: Vec<OsString>| OpenerProgram { program, words, only_directory: false };
    let word = |path: &Path| path.as_os_str().to_owned();
    match (system, opening) {
        (System::Windows, Opening::Visit(Address(url))) => {
            vec![attempt("rundll32.exe", vec!["url.dll,FileProtocolHandler".into(), url.into()])]
        }
        (_, Opening::Visit(Address(url))) => vec![attempt(system.opener(), vec![url.into()])],
        (_, Opening::Open(path)) => vec![attempt(system.opener(), vec![word(path)])],
        (System::Mac, Opening::Reveal(path)) => vec![attempt("open", vec!["-R".into(), word(path)])],
        (System::Windows, Opening::Reveal(path)) => {
            let mut select = OsString::from("/select,");
            select.push(path);
            vec![attempt("explorer.exe", vec![select])]
        }
        (System::Freedesktop, Opening::Reveal(path)) => {
            let mut all = Vec::new();
            if bus {
                let uri = uri(path);
                let method = format!("{FILE_MANAGER}.ShowItems");
                let object = "/org/freedesktop/FileManager1";
                let gdbus = ["call", "--session", "--dest", FILE_MANAGER, "--object-path", object, "--method", &method];
                let gdbus = gdbus.into_iter().map(OsString::from).chain([format!("['{uri}']").into(), "''".into()]);
                all.push(attempt("gdbus", gdbus.collect()));
                let words = ["--session", "--print-reply", "--dest=org.freedesktop.FileManager1", object, &method];
                let words = words.into_iter().map(OsString::from);
                all.push(attempt("dbus-send", words.chain([format!("array:string:{uri}").into(), "string:".into()]).collect()));
            }
            let directory = path.parent().unwrap_or(path);
            all.push(OpenerProgram { program: "xdg-open", words: vec![word(directory)], only_directory: true });
            all
        }
    }
}

/// Returns a path as a `file://` URI, with special characters escaped, for the file manager.
fn uri(path: &Path) -> String {
    let mut uri = "file://".to_owned();
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' | b'~' => uri.push(char::from(*byte)),
            other => drop(write!(uri, "%{other:02X}")),
        }
    }
    uri
}

fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// Returns the first program with this name in aye's own `PATH`, skipping relative directories.
pub(crate) fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let places = std::env::split_paths(&path).filter(|place| place.is_absolute());
    places.map(|place| place.join(name)).find(|path| is_program(path))
}

#[expect(unsafe_code, reason = "there is no other way to start a program in a new session")]
fn detach(command: &mut Command) {
    // SAFETY: between fork and exec, only `setsid` is called, which is async-signal-safe.
    unsafe {
        command.pre_exec(|| setsid().map(drop).map_err(io::Error::from));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command_line(attempt: &OpenerProgram) -> String {
        let words = attempt.words.iter().map(|word| word.to_string_lossy().into_owned());
        std::iter::once(attempt.program.to_owned()).chain(words).collect::<Vec<_>>().join("|")
    }

    #[test]
    fn each_system_has_its_own_open_command_that_gets_the_path_as_one_argument() {
        let path = || PathBuf::from("/w/-a b\n'c',d");
        let all = |system, opening| attempts(system, &opening, true).iter().map(command_line).collect::<Vec<_>>();
        assert_eq!(all(System::Freedesktop, Opening::Open(path())), ["xdg-open|/w/-a b\n'c',d"]);
        assert_eq!(all(System::Mac, Opening::Open(path())), ["open|/w/-a b\n'c',d"]);
        assert_eq!(all(System::Mac, Opening::Reveal(path())), ["open|-R|/w/-a b\n'c',d"]);
        assert_eq!(all(System::Windows, Opening::Reveal(path())), ["explorer.exe|/select,/w/-a b\n'c',d"]);
        let revealed = all(System::Freedesktop, Opening::Reveal(path()));
        assert!(revealed[0].ends_with("ShowItems|['file:///w/-a%20b%0A%27c%27%2Cd']|''"), "{revealed:?}");
        assert!(revealed[1].ends_with("ShowItems|array:string:file:///w/-a%20b%0A%27c%27%2Cd|string:"), "{revealed:?}");
        assert_eq!(revealed[2], "xdg-open|/w");
        assert_eq!(attempts(System::Freedesktop, &Opening::Reveal(path()), false).len(), 1);
    }

    #[test]
    fn cve_2025_6514_only_web_urls_are_passed_to_the_browser_as_one_argument() {
        for bad in ["file:///etc/passwd", "javascript:alert(1)", "a:$(calc)", "-x", "", "mailto:x@y", "ms-msdt:/id", "https:///"]
        {
            assert_eq!(Address::parse(bad), None, "{bad}");
        }
        for odd in ["https://h/a b\"'`$(id)|&;\nx", "https://h/?a='b'&c=`id`", "http://127.0.0.1:1/%22"] {
            let Some(address) = Address::parse(odd) else { continue };
            assert!(address.0.bytes().all(|byte| byte.is_ascii_graphic() && !b"\"'`".contains(&byte)), "{address:?}");
        }
        let address = || Address::parse("https://h/authorize?state=1&x=$(id)").unwrap();
        for system in [System::Freedesktop, System::Mac, System::Windows] {
            let words = attempts(system, &Opening::Visit(address()), true)[0].words.clone();
            assert_eq!(words.last().unwrap(), "https://h/authorize?state=1&x=$(id)", "{system:?}");
        }
    }

    #[test]
    fn openers_inside_the_workspace_are_ignored() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let (workspace, tools) = (root.join("ws"), root.join("tools"));
        std::fs::create_dir_all(workspace.join("bin")).unwrap();
        std::fs::create_dir(&tools).unwrap();
        std::os::unix::fs::symlink(workspace.join("bin"), root.join("link")).unwrap();
        let path = std::env::join_paths([&workspace.join("bin"), &root.join("link"), &tools, &PathBuf::from("bin")]).unwrap();
        assert_eq!(find_outside(&path, &[workspace]), tools.as_os_str());
    }

    #[tokio::test]
    async fn a_missing_display_or_opener_is_an_error() {
        let desktop = |variables: &[(&str, &str)]| Desktop {
            environment: variables.iter().map(|(name, value)| (name.into(), value.into())).collect(),
            path: "/no/such/place".into(),
        };
        let opening = Opening::Open("/w/a.txt".into());
        assert_eq!(desktop(&[("DISPLAY", "")]).perform(&opening).await, Err(OpenError::NoDisplay));
        assert_eq!(desktop(&[("DISPLAY", ":0")]).perform(&opening).await, Err(OpenError::NoOpener("xdg-open")));
    }
}
