use super::limits::{NICER, parse_version};
use super::places::grants;
use super::seccomp::{FORBIDDEN, FORBIDDEN_AMONG_OTHERS, UNKNOWN};
use crate::sys::process::{
    CommandSpec, End, EnvironmentSelection, FinishedRun, Helper, Namespaces, OutputCapture, ProcessError, command_environment,
    run,
};
use crate::sys::sandbox::places::Access;
use crate::sys::sandbox::{Backend, Confinement, ResourceLimits};
use std::ffi::OsString;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Lets the test program act as a command that issues system calls, which is only possible before any thread is
/// started.
#[expect(unsafe_code, reason = "runs before the test harness")]
#[used]
// SAFETY: the loader calls each function in this section once, when the standard library is already usable.
#[unsafe(link_section = ".init_array")]
static ACT_AS_PROBE: extern "C" fn() = {
    extern "C" fn act() {
        match std::env::args().nth(1).as_deref() {
            Some("__call") => std::process::exit(call_main()),
            Some("__forbidden") => std::process::exit(forbidden_main()),
            Some("__bomb") => bomb_main(),
            Some("__hog") => std::process::exit(hog_main()),
            Some("__share") => std::process::exit(share_main()),
            Some(_) | None => {}
        }
    }
    act
};

#[expect(unsafe_code, reason = "asks the kernel by number")]
fn call(number: i64, arguments: &[i64]) -> i32 {
    let argument = |at: usize| arguments.get(at).copied().unwrap_or(0);
    // SAFETY: the tests pass numbers, and null where a pointer is expected.
    let result = unsafe { libc::syscall(number, argument(0), argument(1), argument(2), argument(3), argument(4), argument(5)) };
    if result == -1 { nix::errno::Errno::last_raw() } else { 0 }
}

/// Issues a system call and prints the resulting error number.
fn call_main() -> i32 {
    let numbers: Vec<i64> = std::env::args().skip(2).map(|word| word.parse().unwrap()).collect();
    println!("{}", call(numbers[0], &numbers[1..]));
    0
}

/// Issues every forbidden system call and prints the numbers of those that are not blocked.
fn forbidden_main() -> i32 {
    if !std::fs::read_to_string("/proc/self/status").unwrap().lines().any(|line| line == "Seccomp:\t2") {
        println!("no filter");
        return 1;
    }
    let among_others = std::env::args().nth(2).as_deref() == Some("among-others");
    let refused = FORBIDDEN.iter().chain(FORBIDDEN_AMONG_OTHERS.iter().filter(|_| among_others));
    for number in refused.filter(|number| call(**number, &[]) != libc::EPERM) {
        println!("{number} is allowed");
    }
    for number in UNKNOWN.iter().filter(|number| call(**number, &[]) != libc::ENOSYS) {
        println!("{number} is supported");
    }
    0
}

/// Forks until forking fails, then prints the number of processes.
#[expect(unsafe_code, reason = "forks without end")]
fn bomb_main() -> ! {
    for count in 0..5000 {
        // SAFETY: the process has one thread, and the child does nothing.
        match unsafe { libc::fork() } {
            -1 => {
                println!("{count}");
                break;
            }
            0 => loop {
                // SAFETY: the call only waits until the process is killed.
                unsafe { libc::pause() };
            },
            _ => {}
        }
    }
    std::process::exit(0)
}

/// Allocates memory until that fails, then prints the amount in mebibytes.
#[expect(unsafe_code, reason = "maps memory without end")]
fn hog_main() -> i32 {
    const PIECE: usize = 1 << 20;
    let map = || {
        // SAFETY: nothing else refers to the new mapping.
        unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                PIECE,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        }
    };
    println!("{}", (0..4096).take_while(|_| map() != libc::MAP_FAILED).count());
    0
}

/// Allocates this many mebibytes of shared memory, as mappings or as unnamed files, or maps the same memory in nine
/// processes. Then waits, and exits on its own unless it is killed first.
#[expect(unsafe_code, reason = "shares memory as programs do")]
fn share_main() -> i32 {
    use std::io::Write;
    const PIECE: usize = 1 << 20;
    const WAIT: Duration = Duration::from_secs(10);
    let words: Vec<String> = std::env::args().skip(2).collect();
    let (how, count): (&str, usize) = (&words[0], words[1].parse().unwrap());
    let (mut files, mut places) = (Vec::new(), Vec::new());
    for _ in 0..count {
        if how == "files" {
            let file = nix::sys::memfd::memfd_create(c"x", nix::sys::memfd::MFdFlags::empty()).unwrap();
            files.push(std::fs::File::from(file));
            files.last_mut().unwrap().write_all(&vec![1; PIECE]).unwrap();
            continue;
        }
        // SAFETY: nothing else refers to the new mapping, which is written only within its length.
        unsafe {
            let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS | libc::MAP_POPULATE;
            let place = libc::mmap(std::ptr::null_mut(), PIECE, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0);
            assert!(place != libc::MAP_FAILED);
            libc::memset(place, 1, PIECE);
            places.push(place.cast::<u8>());
        }
    }
    let children = if how == "together" { 8 } else { 0 };
    for _ in 0..children {
        // SAFETY: the process has one thread, and the child only reads the mapping and waits.
        if unsafe { libc::fork() } == 0 {
            let read = |place: &*mut u8| {
                (0..PIECE).step_by(1024).map(|at| unsafe { u64::from(place.add(at).read_volatile()) }).sum::<u64>()
            };
            let sum: u64 = places.iter().map(read).sum();
            std::thread::sleep(Duration::from_secs(2));
            return i32::from(sum == 0);
        }
    }
    std::thread::sleep(if how == "together" { Duration::from_secs(2) } else { WAIT });
    0
}

/// Returns a workspace that every user can access.
fn workspace() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    std::fs::set_permissions(directory.path(), Permissions::from_mode(0o777)).unwrap();
    let path = std::fs::canonicalize(directory.path()).unwrap();
    (directory, path)
}

fn held(strength: Backend, root: &Path) -> Confinement {
    Confinement::new(strength, vec![root.to_owned()])
}

/// User who runs a command in a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Who {
    /// The user who runs the tests.
    This,
    /// An unprivileged user, available if the tests are run by root.
    Nobody,
}

/// Returns every user as whom the tests can run commands.
fn everyone() -> Vec<Who> {
    if nix::unistd::geteuid().is_root() && Path::new("/usr/bin/setpriv").exists() {
        return vec![Who::This, Who::Nobody];
    }
    println!("skipped: the second user (not root, or no setpriv)");
    vec![Who::This]
}

/// Returns the helper that runs commands as a user. The returned directory, which contains the helper's script, must
/// outlive the command.
fn helper(who: Who) -> (Helper, Option<tempfile::TempDir>) {
    if who == Who::This {
        return (Helper::default(), None);
    }
    let (directory, path) = workspace();
    let script = path.join("helper");
    let program = std::env::current_exe().unwrap();
    let text =
        format!("#!/bin/sh\nexec /usr/bin/setpriv --reuid=65534 --regid=65534 --clear-groups {} \"$@\"\n", program.display());
    std::fs::write(&script, text).unwrap();
    std::fs::set_permissions(&script, Permissions::from_mode(0o755)).unwrap();
    (Helper { program: script, ..Helper::default() }, Some(directory))
}

/// Returns a copy of this program in a directory of its own, because the program's own directory may be covered in the
/// sandbox.
fn probe() -> (tempfile::TempDir, PathBuf) {
    let (directory, path) = workspace();
    let (program, name) = (std::env::current_exe().unwrap(), path.join("probe"));
    if std::fs::hard_link(&program, &name).is_err() {
        std::fs::copy(&program, &name).unwrap();
    }
    (directory, path)
}

async fn execute(who: Who, mut confinement: Confinement, line: &str) -> Result<FinishedRun, ProcessError> {
    let (mut helper, _script) = helper(who);
    if confinement.strength == Backend::Landlock {
        helper.namespaces = Namespaces::Never;
    }
    let mut environment = command_environment(std::env::vars_os(), &EnvironmentSelection::Core, &[], &|_| false);
    let (_probe, probe) = probe();
    environment.push((OsString::from("PROBE"), probe.join("probe").into_os_string()));
    confinement.roots.push(probe);
    let spec = CommandSpec {
        shell: crate::sys::process::Shell::Bash,
        proxy: None,
        line: line.to_owned(),
        directory: confinement.roots[0].clone(),
        environment,
        stdin: None,
        terminal: None,
        confinement: Some(confinement),
        timeout: Duration::from_secs(60),
        max_output_bytes: 100 * 1024,
        helper,
    };
    let (live, _received) = tokio::sync::mpsc::channel(1);
    run(spec, live, CancellationToken::new()).await
}

/// Runs a line and returns its output followed by its error output.
async fn told(who: Who, confinement: Confinement, line: &str) -> String {
    let finished = execute(who, confinement, line).await.unwrap();
    let text = |captured: OutputCapture| captured.text(100_000).trim().to_owned();
    format!("{}\n{}", text(finished.stdout), text(finished.stderr)).trim().to_owned()
}

#[test]
fn kernel_versions_are_parsed_in_many_formats() {
    for (release, version) in [("6.18.44-fc-v669", (6, 18)), ("5.14", (5, 14)), ("6.1-rc3+", (6, 1)), ("x", (0, 0)), ("", (0, 0))]
    {
        assert_eq!(parse_version(release), version, "{release}");
    }
}

#[test]
fn excluded_paths_are_omitted_and_their_siblings_are_listed() {
    let (_directory, root) = workspace();
    for place in ["src/deep", ".git/hooks", ".git/objects", "notes"] {
        std::fs::create_dir_all(root.join(place)).unwrap();
    }
    for file in ["secret", "plain", "notes/secret", "notes/plain"] {
        std::fs::write(root.join(file), "").unwrap();
    }
    std::os::unix::fs::symlink(root.join("secret"), root.join("link")).unwrap();
    let confinement = Confinement {
        read_only: vec![root.join(".git/hooks"), root.join(".vscode")],
        reopened: vec![root.join(".git/hooks/inner")],
        hidden: vec![root.join("secret"), root.join("notes/secret"), root.join("missing")],
        ..held(Backend::Landlock, &root)
    };
    let granted = grants(&confinement).unwrap();
    let below: std::collections::BTreeSet<(&str, Access)> =
        granted.iter().filter_map(|(path, access)| Some((path.strip_prefix(&root).ok()?.to_str()?, *access))).collect();
    let expected = [
        (".git/hooks", Access::Read),
        (".git/hooks/inner", Access::Write),
        (".git/objects", Access::Write),
        ("notes/plain", Access::Write),
        ("plain", Access::Write),
        ("src", Access::Write),
    ];
    assert_eq!(below, expected.into_iter().collect());
}

mod by_rules_alone {
    use super::*;

    #[tokio::test]
    async fn only_the_workspace_is_writable_and_hidden_files_are_unreadable() {
        for who in everyone() {
            let (_elsewhere, elsewhere) = workspace();
            let (_directory, root) = workspace();
            std::fs::create_dir(root.join("notes")).unwrap();
            std::fs::set_permissions(root.join("notes"), Permissions::from_mode(0o777)).unwrap();
            for file in ["notes/secret", "notes/plain"] {
                std::fs::write(root.join(file), file).unwrap();
                std::fs::set_permissions(root.join(file), Permissions::from_mode(0o666)).unwrap();
            }
            std::fs::write(elsewhere.join("secret"), "elsewhere").unwrap();
            let inside = held(Backend::Landlock, &root);
            assert_eq!(told(who, inside.clone(), "echo a > a && mkdir b && mv a b/c && cat b/c; rm -r b; ls").await, "a\nnotes");
            let denied = "Permission denied";
            let line = format!("echo a > {}/a", elsewhere.display());
            assert!(told(who, inside.clone(), &line).await.contains(denied), "{who:?}");
            let line = format!("cat {}/secret; echo $TMPDIR; echo x > $TMPDIR/x && cat $TMPDIR/x", elsewhere.display());
            let hidden = vec![root.join("notes/secret"), elsewhere.join("secret")];
            let output = told(who, Confinement { hidden: hidden.clone(), ..inside.clone() }, &line).await;
            assert!(output.contains(denied) && output.contains("\nx") && !output.contains("elsewhere\n"), "{output}");
            assert!(!Path::new(output.lines().next().unwrap()).exists(), "the temporary directory is missing: {output}");
            let line = "ls notes; cat notes/plain; echo; ln notes/secret s; cat s; cat notes/secret; cat /proc/self/cwd/notes/secret; echo b > notes/plain; mv notes/secret notes/s; cat notes/s";
            let output = told(who, Confinement { hidden, ..inside }, line).await;
            assert!(output.starts_with("plain\nsecret\nnotes/plain") && !output.contains("notes/secret\n"), "{output}");
            assert_eq!(std::fs::read_to_string(root.join("notes/plain")).unwrap(), "b\n");
        }
    }

    #[tokio::test]
    async fn read_only_paths_inside_the_workspace_cannot_be_changed() {
        for who in everyone() {
            let (_directory, root) = workspace();
            for place in [".git/hooks", "src"] {
                std::fs::create_dir_all(root.join(place)).unwrap();
                std::fs::set_permissions(root.join(place), Permissions::from_mode(0o777)).unwrap();
            }
            let confinement =
                Confinement { read_only: vec![root.join(".git/hooks"), root.join(".vscode")], ..held(Backend::Landlock, &root) };
            let line =
                "echo a > src/a; echo b > .git/hooks/b; mkdir .vscode; mv .git g; ln -s src .vscode; ls -A . .git/hooks src";
            let output = told(who, confinement, line).await;
            assert!(output.starts_with(".:\n.git\nsrc\n\n.git/hooks:\n\nsrc:\na\n"), "{output}");
        }
    }

    #[tokio::test]
    async fn other_processes_and_sockets_are_inaccessible() {
        for who in everyone() {
            let (_directory, root) = workspace();
            let inside = held(Backend::Landlock, &root);
            let line = format!(
                "cat /proc/{}/environ > e; kill -0 {} ; \"$PROBE\" __forbidden among-others; for f in 1 2 10 16 17 38 40; do \"$PROBE\" __call {} $f 3 0; done; \"$PROBE\" __call {} 1 1 0 0",
                std::process::id(),
                std::process::id(),
                libc::SYS_socket,
                libc::SYS_socketpair,
            );
            let output = told(who, inside, &line).await;
            let refused = libc::EAFNOSUPPORT.to_string();
            let lines: Vec<&str> = output.lines().take(8).collect();
            let expected = [&refused, &refused, &refused, "0", &refused, &refused, &refused, "14"];
            assert_eq!(lines, expected, "{who:?} {output}");
            assert!(output.contains("environ: Permission denied") && output.contains("kill: "), "{output}");
        }
    }

    #[tokio::test]
    async fn the_helper_survives_a_command_that_kills_everything() {
        for who in everyone() {
            let (_directory, root) = workspace();
            let line = "(setsid sleep 987 &) ; bash -c 'kill -9 -1'; sleep 988";
            let finished = execute(who, held(Backend::Landlock, &root), line).await.unwrap();
            assert_eq!(finished.end, End::Signalled(libc::SIGKILL), "{who:?}");
        }
    }
}

mod in_namespaces {
    use super::*;

    /// Returns whether this kernel lets both users create namespaces. Prints a message if not.
    fn possible() -> bool {
        let possible = std::process::Command::new("unshare").args(["-Ur", "true"]).output();
        let possible = possible.is_ok_and(|output| output.status.success());
        if !possible {
            println!("skipped: this system does not allow user namespaces");
        }
        possible
    }

    fn inside(root: &Path) -> Confinement {
        held(Backend::Namespaces, root)
    }

    fn is_root(who: Who) -> bool {
        who == Who::This && nix::unistd::geteuid().is_root()
    }

    #[tokio::test]
    async fn system_calls_that_no_build_needs_are_denied() {
        if !possible() {
            return;
        }
        for who in everyone() {
            let (_directory, root) = workspace();
            assert_eq!(told(who, inside(&root), "\"$PROBE\" __forbidden").await, "", "{who:?}");
            let sockets = |family: i64, protocol: i64| vec![libc::SYS_socket, family, 3, protocol];
            let calls: Vec<(Vec<i64>, i32)> = vec![
                (vec![libc::SYS_unshare, 0x1000_0000], libc::EPERM),
                (vec![libc::SYS_unshare, 0x2_0000], libc::EPERM),
                (vec![libc::SYS_unshare, 0x80], libc::EPERM),
                (vec![libc::SYS_unshare, 0x400], 0),
                (vec![libc::SYS_clone, 0x1000_0011], libc::EPERM),
                (vec![libc::SYS_clone, 0x4000_0011], libc::EPERM),
                (vec![libc::SYS_clone3, 0, 0], libc::ENOSYS),
                (vec![libc::SYS_io_uring_setup, 1, 0], libc::ENOSYS),
                (vec![libc::SYS_ioctl, 0, 0x5412, 0], libc::EPERM),
                (vec![libc::SYS_ioctl, 0, 0x541C, 0], libc::EPERM),
                (vec![libc::SYS_ioctl, 0, 0x1_0000_5412, 0], libc::EPERM),
                (vec![libc::SYS_ioctl, 0, 0x5413, 0], libc::ENOTTY),
                (sockets(libc::AF_VSOCK.into(), 0), libc::EAFNOSUPPORT),
                (sockets(libc::AF_PACKET.into(), 0), libc::EAFNOSUPPORT),
                (sockets(libc::AF_ALG.into(), 0), libc::EAFNOSUPPORT),
                (sockets(libc::AF_BLUETOOTH.into(), 0), libc::EAFNOSUPPORT),
                (sockets(0x1_0000_0000 + i64::from(libc::AF_ALG), 0), libc::EAFNOSUPPORT),
                (sockets(libc::AF_NETLINK.into(), libc::NETLINK_KOBJECT_UEVENT.into()), libc::EAFNOSUPPORT),
                (sockets(libc::AF_NETLINK.into(), libc::NETLINK_ROUTE.into()), 0),
                (vec![libc::SYS_socket, 1, 1, 0], 0),
                (vec![libc::SYS_socket, 2, 1, 0], 0),
                (vec![libc::SYS_socket, 10, 2, 0], 0),
                (vec![libc::SYS_ptrace, 0, 0, 0, 0], 0),
            ];
            #[cfg(target_arch = "x86_64")]
            let calls: Vec<_> = calls
                .into_iter()
                .chain([libc::SYS_getpid, libc::SYS_mount, 521, 0].map(|number| (vec![0x4000_0000 + number], libc::ENOSYS)))
                .collect();
            let words = |call: &Vec<i64>| call.iter().map(i64::to_string).collect::<Vec<_>>().join(" ");
            let line: Vec<_> = calls.iter().map(|(call, _)| format!("\"$PROBE\" __call {} </dev/null; ", words(call))).collect();
            let line = line.concat();
            let output = told(who, inside(&root), &line).await;
            let lines: Vec<&str> = output.lines().collect();
            assert_eq!(lines.len(), calls.len(), "{output}");
            for ((call, expected), found) in calls.iter().zip(lines) {
                assert_eq!(found, expected.to_string(), "{who:?}: {call:?}");
            }
        }
    }

    #[tokio::test]
    async fn commands_have_no_privileges_over_the_machine() {
        if !possible() {
            return;
        }
        // The tests themselves may run under `nice`.
        let own = std::process::Command::new("nice").output().unwrap().stdout;
        let own: i32 = String::from_utf8(own).unwrap().trim().parse().unwrap();
        let niceness = (own + NICER).min(19);
        for who in everyone() {
            let (_directory, root) = workspace();
            let line = "grep -E '^(Cap|NoNewPrivs|Seccomp:)' /proc/self/status | tr -d '\t'; nice; cat /proc/self/oom_score_adj; ulimit -c; ulimit -Hc";
            let output = told(who, inside(&root), line).await;
            let (none, files) = ("0000000000000000", "00000000000004fb");
            let kept = if is_root(who) { files } else { none };
            let expected = format!(
                "CapInh:{none}\nCapPrm:{kept}\nCapEff:{kept}\nCapBnd:{kept}\nCapAmb:{none}\nNoNewPrivs:1\nSeccomp:2\n{niceness}\n500\n0\n0"
            );
            assert_eq!(output, expected, "{who:?}");
        }
    }

    #[tokio::test]
    async fn the_first_process_can_be_neither_inspected_nor_killed() {
        if !possible() {
            return;
        }
        for who in everyone() {
            let (_directory, root) = workspace();
            let line = "kill -9 1; kill -TERM -1; for f in environ mem maps; do cat /proc/1/$f >/dev/null 2>&1 && echo $f; done; for f in fd/0 root cwd exe; do readlink /proc/1/$f; done; echo still";
            let output = told(who, inside(&root), line).await;
            assert_eq!(output.lines().next(), Some("still"), "{who:?} {output}");
        }
    }

    #[tokio::test]
    async fn the_process_limit_applies_to_root_too() {
        if !possible() {
            return;
        }
        for who in everyone() {
            if is_root(who) && !super::super::limits_process_ids() {
                println!("skipped: before Linux 6.14 root's processes cannot be counted by namespace");
                continue;
            }
            let (_directory, root) = workspace();
            let limits = ResourceLimits { processes: Some(40), ..ResourceLimits::default() };
            let output = told(who, Confinement { limits, ..inside(&root) }, "\"$PROBE\" __bomb").await;
            let most = if is_root(who) { 340 } else { 40 };
            let count: u64 = output.parse().unwrap();
            assert!((30..=most).contains(&count), "{who:?} {count}");
            // Enough process IDs remain after all have been used once.
            let line = "for i in $(seq 400); do /bin/true; done; for i in $(seq 20); do sleep 5 & done; jobs -r | wc -l";
            assert_eq!(told(who, Confinement { limits, ..inside(&root) }, line).await, "20", "{who:?}");
        }
    }

    #[tokio::test]
    async fn memory_file_size_and_cpu_time_are_limited() {
        if !possible() {
            return;
        }
        for who in everyone() {
            let (_directory, root) = workspace();
            let with = |limits| Confinement { limits, ..inside(&root) };
            let memory = ResourceLimits { memory_bytes: Some(64 << 20), ..ResourceLimits::default() };
            let count: u64 = told(who, with(memory), "\"$PROBE\" __hog").await.parse().unwrap();
            assert!((32..=64).contains(&count), "{who:?} {count}");
            let file = ResourceLimits { file_bytes: Some(1_000_000), ..ResourceLimits::default() };
            let output = told(who, with(file), "head -c 2000000 /dev/zero > big; echo $?; stat -c %s big").await;
            assert!(output.starts_with("153\n1000000"), "{who:?} {output}");
            let time = ResourceLimits { cpu_seconds: Some(1), ..ResourceLimits::default() };
            let finished = execute(who, with(time), "while :; do :; done").await.unwrap();
            assert_eq!(finished.end, End::Signalled(libc::SIGXCPU), "{who:?}");
        }
    }

    #[tokio::test]
    async fn shared_memory_over_the_limit_ends_the_command() {
        if !possible() {
            return;
        }
        for who in everyone() {
            let (_directory, root) = workspace();
            let memory = ResourceLimits { memory_bytes: Some(64 << 20), ..ResourceLimits::default() };
            for (how, count, end) in [
                ("maps", 80, End::MemoryFull),
                ("files", 80, End::MemoryFull),
                // Each of nine processes maps the whole memory, but it exists only once.
                ("together", 32, End::Exited(0)),
            ] {
                let line = format!("\"$PROBE\" __share {how} {count}");
                let finished = execute(who, Confinement { limits: memory, ..inside(&root) }, &line).await.unwrap();
                assert_eq!(finished.end, end, "{who:?} {how} {count}");
            }
        }
    }

    #[tokio::test]
    async fn a_fork_bomb_is_killed_with_its_command() {
        if !possible() {
            return;
        }
        for who in everyone() {
            let (_directory, root) = workspace();
            let limits = ResourceLimits { processes: Some(200), ..ResourceLimits::default() };
            let line = "exec 2>/dev/null; mkfifo f; exec 3<>f; bomb() { bomb | bomb & }; bomb; read -t 0.3 -u 3; exit 5";
            let begin = std::time::Instant::now();
            let finished = execute(who, Confinement { limits, ..inside(&root) }, line).await.unwrap();
            // Bash exits with 254 if the bomb is so fast that its first command cannot fork any more.
            assert!(matches!(finished.end, End::Exited(5 | 254)), "{who:?}: {:?}", finished.end);
            println!("{who:?}: over after {:?}", begin.elapsed());
        }
    }

    /// Name, command and expected output.
    const NEEDED: [(&str, &str, &str); 10] = [
        ("gcc", "echo 'int main(){return 7;}' > a.c && gcc -g -o a a.c && ./a; echo $?", "7"),
        ("make", "printf 'all:\n\t@echo made\n' > Makefile && make -s -j4", "made"),
        (
            "git",
            "git init -q r && cd r && echo a > a && git add a && git -c user.name=a -c user.email=a@b commit -qm a && git log --format=%s",
            "a",
        ),
        ("perl", "perl -e 'my $p = fork; if (!$p) { exit 3 } waitpid $p, 0; print $? >> 8'", "3"),
        (
            "/usr/bin/python3",
            "/usr/bin/python3 -c 'import multiprocessing, subprocess, socket, tempfile\ns = socket.socket(); s.bind((\"127.0.0.1\", 0)); s.listen()\nc = socket.create_connection(s.getsockname())\nwith multiprocessing.Pool(2) as p: print(sum(p.map(abs, [-1, -2])), subprocess.check_output([\"echo\", \"x\"]))'",
            "3 b'x\\n'",
        ),
        (
            "node",
            "node -e 'const w = new (require(\"worker_threads\").Worker)(\"require(\\\"fs\\\").writeFileSync(\\\"n\\\", \\\"1\\\")\", {eval: true}); w.on(\"exit\", () => console.log(require(\"child_process\").execSync(\"cat n\") + \"!\"))'",
            "1!",
        ),
        ("bash", "exec 2>/dev/null; set -m; sleep 0.01 & wait; (sleep 0.3; exit 4) & fg >/dev/null; echo $?", "4"),
        ("strace", "strace -f -o t sh -c 'true; true' && grep -c exited t", "1"),
        ("gdb", "gdb -nx -batch -ex run -ex 'print 6*7' /bin/true 2>/dev/null | tail -1", "$1 = 42"),
        ("cargo", "cargo init -q --vcs none a && cd a && cargo run -q --offline", "Hello, world!"),
    ];

    #[tokio::test]
    async fn common_build_tools_work() {
        if !possible() {
            return;
        }
        for who in everyone() {
            for (name, line, expected) in NEEDED {
                let (_directory, root) = workspace();
                let line = format!(
                    "export RUSTUP_HOME=${{RUSTUP_HOME:-$HOME/.rustup}} CARGO_HOME=${{CARGO_HOME:-$HOME/.cargo}} HOME=$PWD; command -v {name} >/dev/null || {{ echo absent; exit; }}; {line}"
                );
                let output = told(who, inside(&root), &line).await;
                if output.starts_with("absent") {
                    println!("skipped: {name} ({who:?} has none)");
                    continue;
                }
                assert_eq!(output, expected, "{who:?} {name}");
            }
        }
    }
}
