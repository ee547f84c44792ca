//! Sandbox profile for `sandbox-exec` on macOS. If several rules match, the last one applies.

use super::places::{Access, named_paths};
use super::{Confinement, NetworkAccess};
use std::fmt::Write as _;
use std::io;
use std::path::Path;

/// Rules that every program needs in order to start and to run other programs. They grant no access to the user's
/// session: not to the keychain, the clipboard, launch services, or (by signals) other processes.
const BASE: &str = "(version 1)
(deny default)
(allow process-exec process-fork)
(allow signal process-info* (target same-sandbox))
(allow sysctl-read)
(allow pseudo-tty)
(allow ipc-posix-sem ipc-posix-shm)
(allow user-preference-read)
(allow mach-lookup
  (global-name \"com.apple.system.logger\")
  (global-name \"com.apple.system.notification_center\")
  (global-name \"com.apple.system.opendirectoryd.libinfo\")
  (global-name \"com.apple.system.opendirectoryd.membership\"))
(allow file-read*)
(allow file-write-data file-ioctl
  (literal \"/dev/null\") (literal \"/dev/zero\") (literal \"/dev/tty\") (literal \"/dev/ptmx\") (literal \"/dev/dtracehelper\")
  (regex #\"^/dev/ttys[0-9]+$\"))
";

/// Rules that allow name resolution, certificate checks and reading the network settings.
const OPEN_NETWORK: &str = "(allow network* system-socket)
(deny network-outbound (remote unix-socket))
(allow network-outbound (literal \"/private/var/run/mDNSResponder\"))
(allow mach-lookup
  (global-name \"com.apple.SystemConfiguration.configd\")
  (global-name \"com.apple.SystemConfiguration.DNSConfiguration\")
  (global-name \"com.apple.networkd\")
  (global-name \"com.apple.SecurityServer\")
  (global-name \"com.apple.trustd.agent\"))
";

/// Returns the profile for a confinement. `proxy` is the port of aye's proxy on this machine.
pub(in crate::sys) fn profile(confinement: &Confinement, proxy: Option<u16>) -> io::Result<String> {
    let mut profile = BASE.to_owned();
    let places = named_paths(confinement);
    for (path, access) in &places {
        let quoted = quoted(path)?;
        let _ = match access {
            Access::Nothing => writeln!(profile, "(deny file-read-data file-read-xattr file-write* (subpath {quoted}))"),
            Access::Read => {
                writeln!(profile, "(allow file-read* (subpath {quoted}))\n(deny file-write* (subpath {quoted}))")
            }
            Access::Write => writeln!(profile, "(allow file-read* file-write* (subpath {quoted}))"),
        };
    }
    // Rules apply to names. A directory with a protected entry must keep its name, or the rule would no longer apply to
    // the entry.
    for (path, _) in places.iter().filter(|(_, access)| **access < Access::Write) {
        let written =
            |above: &&Path| above.ancestors().find_map(|named| places.get(named)).is_some_and(|access| *access == Access::Write);
        for above in path.ancestors().skip(1).take_while(written) {
            let _ = writeln!(profile, "(deny file-write-unlink (literal {}))", quoted(above)?);
        }
    }
    match (confinement.network, proxy) {
        (NetworkAccess::Open, _) => profile.push_str(OPEN_NETWORK),
        (NetworkAccess::Proxied, Some(port)) => {
            let _ = writeln!(profile, "(allow network-outbound (remote ip \"localhost:{port}\"))");
        }
        (NetworkAccess::Proxied, None) => {}
    }
    Ok(profile)
}

/// Quotes a path as a string literal in the profile language.
fn quoted(path: &Path) -> io::Result<String> {
    let text = path.to_str().filter(|text| !text.contains('\0')).ok_or_else(|| {
        let message =
            format!("the name of `{}` is not valid UTF-8, so the sandbox cannot refer to it; rename it", path.display());
        io::Error::new(io::ErrorKind::InvalidInput, message)
    })?;
    Ok(format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::sandbox::{Backend, ResourceLimits, View};
    use std::path::PathBuf;

    fn confinement() -> Confinement {
        Confinement {
            strength: Backend::Landlock,
            roots: vec![PathBuf::from("/Users/ada/.local/project")],
            view: View::Real,
            writable: vec![PathBuf::from("/private/tmp/own")],
            read_only: vec![PathBuf::from("/Users/ada/.local/project/.git/hooks")],
            reopened: vec![PathBuf::from("/Users/ada/.local/project/.git/hooks/mine")],
            hidden: vec![PathBuf::from("/Users/ada/.local"), PathBuf::from("/Users/ada/.local/project/deep/.env")],
            shown: Vec::new(),
            links: Vec::new(),
            caches: Vec::new(),
            substitutes: Vec::new(),
            network: NetworkAccess::Proxied,
            limits: ResourceLimits::default(),
        }
    }

    fn places(confinement: &Confinement) -> Vec<String> {
        let text = profile(confinement, Some(8123)).unwrap();
        text.strip_prefix(BASE).unwrap().lines().map(str::to_owned).collect()
    }

    #[test]
    fn rules_for_deeper_paths_come_last() {
        let expected = [
            r#"(allow file-read* file-write* (subpath "/private/tmp/own"))"#,
            r#"(deny file-read-data file-read-xattr file-write* (subpath "/Users/ada/.local"))"#,
            r#"(allow file-read* file-write* (subpath "/Users/ada/.local/project"))"#,
            r#"(allow file-read* (subpath "/Users/ada/.local/project/.git/hooks"))"#,
            r#"(deny file-write* (subpath "/Users/ada/.local/project/.git/hooks"))"#,
            r#"(allow file-read* file-write* (subpath "/Users/ada/.local/project/.git/hooks/mine"))"#,
            r#"(deny file-read-data file-read-xattr file-write* (subpath "/Users/ada/.local/project/deep/.env"))"#,
            r#"(deny file-write-unlink (literal "/Users/ada/.local/project/.git"))"#,
            r#"(deny file-write-unlink (literal "/Users/ada/.local/project"))"#,
            r#"(deny file-write-unlink (literal "/Users/ada/.local/project/deep"))"#,
            r#"(deny file-write-unlink (literal "/Users/ada/.local/project"))"#,
            r#"(allow network-outbound (remote ip "localhost:8123"))"#,
        ];
        let mut lines = places(&confinement());
        // The order of paths that do not contain each other does not matter.
        let own = lines.iter().position(|line| line.contains("/private/tmp/own")).unwrap();
        let first = lines.remove(own);
        lines.insert(0, first);
        assert_eq!(lines, expected);
    }

    #[test]
    fn a_read_only_workspace_has_no_write_rules() {
        let read = Confinement { view: View::ReadOnly, writable: Vec::new(), reopened: Vec::new(), ..confinement() };
        assert!(!places(&read).iter().any(|line| line.starts_with("(allow") && line.contains("file-write")));
    }

    #[test]
    fn the_network_is_blocked_except_for_the_proxy_or_fully_allowed() {
        let network = |network, proxy| {
            let text = profile(&Confinement { network, ..confinement() }, proxy).unwrap();
            text.lines().filter(|line| line.contains("network")).map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(network(NetworkAccess::Proxied, None), [""; 0]);
        assert!(network(NetworkAccess::Open, Some(1))[0].starts_with("(allow network*"));
    }

    #[test]
    fn path_names_are_quoted_safely() {
        for (path, text) in [
            ("/a b", r#""/a b""#),
            ("/a\") (allow default) (\"", r#""/a\") (allow default) (\"""#),
            ("/a\\", r#""/a\\""#),
            ("/a\\\"", r#""/a\\\"""#),
            ("/a\nb;c", "\"/a\nb;c\""),
            ("/ä→", "\"/ä→\""),
        ] {
            assert_eq!(quoted(Path::new(path)).unwrap(), text);
        }
        #[cfg(unix)]
        {
            use std::os::unix::ffi::OsStrExt;
            let odd = Path::new(std::ffi::OsStr::from_bytes(b"/a\xff"));
            assert!(quoted(odd).unwrap_err().to_string().contains("not valid UTF-8"));
        }
    }
}
