mod piped;
mod terminals;

use super::environment::describe_environment;
use super::run::{INTERRUPT_GRACE, Namespaces};
use super::*;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Lets the test program act as its own helper, which is only possible before any thread is started.
#[expect(unsafe_code, reason = "runs before the test harness")]
#[used]
// SAFETY: the loader calls each function in this section once, when the standard library is already usable.
#[unsafe(link_section = ".init_array")]
static ACT_AS_HELPER: extern "C" fn() = {
    extern "C" fn act() {
        match std::env::args().nth(1).as_deref() {
            Some(SUPERVISE) => supervise_main(),
            Some("__parent") => parent_main(),
            Some(_) | None => {}
        }
    }
    act
};

/// Acts as aye and runs a line until it is killed.
fn parent_main() -> ! {
    let kind: usize = std::env::args().nth(2).unwrap().parse().unwrap();
    let line = std::env::args().nth(3).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let _ = runtime.block_on(execute_spec(KINDS[kind](&line)));
    std::process::exit(0)
}

fn spec(line: &str) -> CommandSpec {
    CommandSpec {
        shell: crate::sys::process::Shell::Bash,
        terminal: None,
        confinement: None,
        proxy: None,
        line: line.to_owned(),
        directory: std::fs::canonicalize(std::env::temp_dir()).unwrap(),
        environment: command_environment(std::env::vars_os(), &EnvironmentSelection::Core, &[], &|_| false),
        stdin: None,
        timeout: Duration::from_secs(60),
        max_output_bytes: 100 * 1024,
        helper: Helper::default(),
    }
}

/// Returns a spec that behaves as on a kernel that does not allow namespaces.
fn spec_without_namespaces(line: &str) -> CommandSpec {
    CommandSpec { helper: Helper { namespaces: Namespaces::Never, ..Helper::default() }, ..spec(line) }
}

const KINDS: [fn(&str) -> CommandSpec; 2] = [spec, spec_without_namespaces];

async fn execute(line: &str) -> Result<FinishedRun, ProcessError> {
    execute_spec(spec(line)).await
}

async fn execute_spec(spec: CommandSpec) -> Result<FinishedRun, ProcessError> {
    let (live, _received) = mpsc::channel(1);
    run(spec, live, CancellationToken::new()).await
}

/// Returns the path of a new file through which a command can report something.
fn mark() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("mark");
    (directory, path)
}

/// Waits until a condition is true. Panics with `what` once the time limit is exceeded.
#[track_caller]
fn until(what: &str, limit: Duration, condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < limit, "{what}: not within {limit:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Returns the processes whose command line contains `word`.
fn running(word: &str) -> Vec<i32> {
    let own = std::process::id().cast_signed();
    std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok())
        .filter(|pid| *pid != own)
        .filter(|pid| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).contains(word)
        })
        .collect()
}

/// Returns a word that no other process's command line contains.
fn word() -> String {
    format!("9{:08}.{}", std::process::id(), uuid::Uuid::new_v4().as_u128() % 1_000_000_000)
}

/// Returns a line that forks twice and then starts a sleeping process in a new session. The process ignores `SIGTERM`
/// and `SIGHUP` and leaves the output open.
fn stubborn(word: &str) -> String {
    format!(
        "(setsid bash -c 'trap \"\" TERM HUP INT; setsid bash -c \"trap \\\"\\\" TERM HUP INT; sleep {word}; true\" & sleep {word}; true' &); "
    )
}

#[tokio::test]
async fn stdout_stderr_and_exit_code_are_captured_separately() {
    let finished = execute("echo out; echo err >&2; exit 3").await.unwrap();
    assert_eq!(finished.end, End::Exited(3));
    assert_eq!(finished.stdout.text(1000), "out\n");
    assert_eq!(finished.stderr.text(1000), "err\n");
}

#[tokio::test]
async fn termination_by_a_signal_is_reported() {
    assert_eq!(execute("kill -9 $$").await.unwrap().end, End::Signalled(9));
    assert_eq!(execute("kill -TERM $$").await.unwrap().end, End::Signalled(15));
}

#[tokio::test]
async fn stdin_is_the_given_text_or_empty() {
    let given = CommandSpec { stdin: Some("one\ntwo".into()), ..spec("cat; echo; wc -l < /dev/stdin") };
    assert!(execute_spec(given).await.unwrap().stdout.text(1000).starts_with("one\ntwo\n"));
    assert_eq!(execute("cat").await.unwrap().stdout.total(), 0);
}

#[tokio::test]
async fn no_file_descriptor_is_inherited() {
    let finished = execute("ls /proc/self/fd | sort -n | tr '\\n' ' '").await.unwrap();
    // The fourth descriptor is the directory that `ls` has open.
    assert_eq!(finished.stdout.text(1000), "0 1 2 3 ");
}

#[tokio::test]
async fn the_command_starts_with_default_signals_in_its_own_session() {
    let finished = execute("grep -E 'Sig(Blk|Ign)' /proc/self/status; ps -o sid= -p $$ | tr -d ' '; echo $$").await.unwrap();
    let text = finished.stdout.text(1000);
    let lines: Vec<_> = text.lines().collect();
    let standard = |line: &str| u64::from_str_radix(line.rsplit('\t').next().unwrap(), 16).unwrap() & 0x7FFF_FFFF;
    assert_eq!((standard(lines[0]), standard(lines[1])), (0, 0), "{text}");
    if lines.len() == 4 {
        assert_eq!(lines[2], lines[3], "{text}");
    }
}

#[tokio::test]
async fn large_output_is_counted_and_its_start_and_end_are_kept() {
    let finished = execute("echo first; yes | head -c 50000000; echo last").await.unwrap();
    assert_eq!(finished.stdout.total(), 50_000_011);
    let text = finished.stdout.text(100 * 1024);
    assert!(text.starts_with("first\ny\n") && text.ends_with("y\nlast\n"), "both ends");
    assert!(text.len() < 100 * 1024 + 100);
}

#[tokio::test]
async fn the_exit_of_the_main_process_kills_remaining_children() {
    for kind in KINDS {
        let word = word();
        let line = format!("{} sleep 0.2; echo done", stubborn(&word));
        let finished = execute_spec(kind(&line)).await.unwrap();
        assert_eq!(finished.stdout.text(100), "done\n");
        assert_eq!(running(&word), Vec::<i32>::new());
    }
}

#[tokio::test]
async fn a_timeout_kills_the_whole_process_tree() {
    let ended = KINDS.map(|kind| async move {
        let word = word();
        let line = format!("{} echo started; sleep {word}", stubborn(&word));
        let finished = execute_spec(CommandSpec { timeout: Duration::from_secs(3), ..kind(&line) }).await.unwrap();
        assert_eq!(finished.end, End::TimedOut);
        assert_eq!(finished.stdout.text(100), "started\n");
        assert_eq!(running(&word), Vec::<i32>::new());
    });
    futures_util::future::join_all(ended).await;
}

#[tokio::test]
async fn a_program_may_clean_up_after_the_timeout() {
    let (_directory, mark) = mark();
    let line = format!("bash -c 'trap \"sleep 0.3; echo clean > {}; exit\" TERM; sleep 60 & wait'", mark.display());
    let finished = execute_spec(CommandSpec { timeout: Duration::from_secs(3), ..spec(&line) }).await.unwrap();
    assert_eq!(finished.end, End::TimedOut);
    assert_eq!(std::fs::read_to_string(&mark).unwrap(), "clean\n");
}

#[tokio::test]
async fn the_kill_token_kills_the_whole_process_tree() {
    let word = word();
    let kill = CancellationToken::new();
    let (live, mut received) = mpsc::channel(8);
    let line = format!("{} echo started; sleep {word}", stubborn(&word));
    let running_command = tokio::spawn(run(spec(&line), live, kill.clone()));
    assert_eq!(received.recv().await.unwrap(), "started\n");
    kill.cancel();
    assert_eq!(running_command.await.unwrap().unwrap().end, End::Killed);
    assert_eq!(running(&word), Vec::<i32>::new());
}

/// Runs a line and interrupts it, as the user would, once it has printed something.
async fn interrupted(line: &str) -> (FinishedRun, Duration) {
    let interrupt = CancellationToken::new();
    let (live, mut received) = mpsc::channel(8);
    let beside = OutputReceivers { interrupt: interrupt.clone(), ..OutputReceivers::default() };
    let running = tokio::spawn(run_with_receivers(spec(line), live, CancellationToken::new(), beside));
    received.recv().await.unwrap();
    let begun = std::time::Instant::now();
    interrupt.cancel();
    (running.await.unwrap().unwrap(), begun.elapsed())
}

#[tokio::test]
async fn an_interrupt_sends_sigint_and_keeps_the_output() {
    let line = "trap 'echo got it; exit 0' INT; echo begun; while :; do sleep 0.05; done";
    let (finished, _) = interrupted(line).await;
    assert_eq!(finished.end, End::Interrupted);
    assert_eq!(finished.stdout.text(100), "begun\ngot it\n");
    // All programs of a pipeline are in the process group.
    let line = "trap : INT; (trap 'echo inner >&2; exit 0' INT; echo begun >&2; while :; do sleep 0.05; done) | cat";
    let (finished, _) = interrupted(line).await;
    assert_eq!((finished.end, finished.stderr.text(100).as_str()), (End::Interrupted, "begun\ninner\n"));
}

#[tokio::test]
async fn a_command_that_ignores_an_interrupt_is_killed_with_its_children() {
    let word = word();
    let (finished, took) = interrupted(&format!("trap '' INT; {} echo begun; sleep {word}", stubborn(&word))).await;
    assert_eq!(finished.end, End::Interrupted);
    assert_eq!(finished.stdout.text(100), "begun\n");
    assert!(took >= INTERRUPT_GRACE, "{took:?}");
    assert_eq!(running(&word), Vec::<i32>::new());
}

#[tokio::test]
async fn a_command_interrupted_before_its_start_does_not_run() {
    let (_directory, mark) = mark();
    let interrupt = CancellationToken::new();
    interrupt.cancel();
    let beside = OutputReceivers { interrupt, ..OutputReceivers::default() };
    let line = format!("echo > {}", mark.display());
    let finished = run_with_receivers(spec(&line), mpsc::channel(1).0, CancellationToken::new(), beside).await.unwrap();
    assert_eq!((finished.end, mark.exists()), (End::Interrupted, false));
}

#[tokio::test]
async fn dropping_the_future_kills_the_whole_process_tree() {
    for kind in KINDS {
        let word = word();
        let (live, mut received) = mpsc::channel(8);
        let line = format!("{} echo started; sleep {word}", stubborn(&word));
        let running_command = tokio::spawn(run(kind(&line), live, CancellationToken::new()));
        received.recv().await.unwrap();
        running_command.abort();
        assert!(running_command.await.is_err());
        until("nothing of it lives", Duration::from_secs(60), || running(&word).is_empty());
    }
}

#[test]
fn nothing_outlives_a_killed_aye() {
    for kind in ["0", "1", "0", "1"] {
        let (_directory, mark) = mark();
        let word = word();
        let line = format!("{} sleep 0.1; echo > {}; sleep {word}", stubborn(&word), mark.display());
        let mut parent =
            std::process::Command::new(std::env::current_exe().unwrap()).args(["__parent", kind, &line]).spawn().unwrap();
        until("the command runs", Duration::from_secs(60), || mark.exists());
        assert!(running(&word).len() >= 3, "the sleepers run");
        kill(Pid::from_raw(parent.id().cast_signed()), Signal::SIGKILL).unwrap();
        parent.wait().unwrap();
        until("nothing of it lives", Duration::from_secs(60), || running(&word).is_empty());
    }
}

#[tokio::test]
async fn a_command_that_kills_its_helper_is_an_error() {
    let line = "kill -9 $PPID; echo alive";
    let word = word();
    let inside = execute(line).await;
    // With namespaces, the command cannot reach the helper.
    match inside {
        Ok(finished) => assert_eq!((finished.end, finished.stdout.text(10).as_str()), (End::Exited(0), "alive\n")),
        Err(error) => assert!(matches!(error, ProcessError::HelperLost), "{error}"),
    }
    let lost = execute_spec(spec_without_namespaces(&format!("kill -9 $PPID; sleep {word}"))).await;
    assert!(matches!(lost, Err(ProcessError::HelperLost)), "{lost:?}");
}

#[test]
fn a_missing_working_directory_is_an_error() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let missing = CommandSpec { directory: PathBuf::from("/nowhere/at/all"), ..spec("true") };
    let error = runtime.block_on(execute_spec(missing)).unwrap_err();
    assert!(matches!(&error, ProcessError::NotStarted(message) if message.contains("/nowhere/at/all")), "{error}");
}

#[tokio::test]
async fn a_command_line_too_long_for_the_kernel_is_rejected_early() {
    let error = execute(&"x".repeat(200_000)).await.unwrap_err();
    assert!(matches!(error, ProcessError::LineTooLong));
}

#[tokio::test]
async fn bash_reads_no_startup_files() {
    let (_directory, mark) = mark();
    std::fs::write(&mark, "echo hijacked").unwrap();
    let own = [("PATH", "/usr/bin:/bin"), ("BASH_ENV", mark.to_str().unwrap()), ("BASH_FUNC_ls%%", "() { echo hijacked; }")];
    let own = own.map(|(name, value)| (OsString::from(name), OsString::from(value)));
    let environment = command_environment(own.into_iter(), &EnvironmentSelection::Inherit, &[], &|_| false);
    let finished = execute_spec(CommandSpec { environment, ..spec("ls -d /; echo $AYE") }).await.unwrap();
    assert_eq!(finished.stdout.text(100), "/\n1\n");
}

#[test]
fn secrets_are_withheld_from_the_environment_unless_listed() {
    let own = [
        ("PATH", "/bin"),
        ("LC_ALL", "C"),
        ("MY_TOKEN", "t"),
        ("AWS_SECRET_ACCESS_KEY", "s"),
        ("GITHUB_PAT", "p"),
        ("DATABASE_URL", "postgres://me:word@host/db"),
        ("HTTPS_PROXY", "http://me:word@proxy"),
        ("NO_PROXY", "localhost"),
        ("LLM_NAME", "provider key of an innocent name"),
        ("HARMLESS", "x"),
        ("INNOCENT", "secret: by its value"),
        ("AWS_PROFILE", "work"),
        ("GIT_SSH_COMMAND", "sh -c x"),
        ("NODE_OPTIONS", "--require x"),
        ("LD_PRELOAD", "/x.so"),
        ("AYE_DATA_DIR", "/d"),
    ];
    let secret_names = vec!["LLM_NAME".to_owned()];
    let names = |choice: &EnvironmentSelection| {
        let own = own.iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
        let kept = command_environment(own, choice, &secret_names, &|value| value.starts_with("secret:"));
        kept.into_iter().map(|(name, _)| name.into_string().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(names(&EnvironmentSelection::Core), ["PATH", "LC_ALL", "NO_PROXY", "AYE"]);
    assert_eq!(names(&EnvironmentSelection::Inherit), ["PATH", "LC_ALL", "NO_PROXY", "HARMLESS", "AYE"]);
    let listed = EnvironmentSelection::Listed(vec!["MY_TOKEN".into(), "LLM_NAME".into()]);
    assert_eq!(names(&listed), ["MY_TOKEN", "LLM_NAME", "AYE"]);
    let some = vec!["PATH".to_owned(), "HARMLESS".into(), "MY_TOKEN".into()];
    assert_eq!(names(&EnvironmentSelection::InheritOf(some.clone())), ["PATH", "HARMLESS", "AYE"]);
    assert_eq!(names(&EnvironmentSelection::CoreOf(some)), ["PATH", "AYE"]);
    let words = |choice: &EnvironmentSelection| {
        let own = own.iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
        describe_environment(own, choice, &secret_names, &|value| value.starts_with("secret:"))
    };
    assert_eq!(words(&EnvironmentSelection::Core), "core, 8 secrets withheld");
    assert_eq!(words(&listed), "listed variables only (2), 6 secrets withheld");
}

#[test]
fn ghsa_vfp4_code_loading_variables_are_not_passed_to_commands() {
    let names = [
        "VIMINIT",
        "EXINIT",
        "LUA_INIT",
        "HOSTALIASES",
        "NODE_OPTIONS",
        "PERL5OPT",
        "PYTHONSTARTUP",
        "RUBYOPT",
        "BASH_ENV",
        "LD_PRELOAD",
    ];
    let own = || names.iter().map(|name| (OsString::from(name), OsString::from("x")));
    for choice in [EnvironmentSelection::Core, EnvironmentSelection::Inherit] {
        let kept: Vec<_> = command_environment(own(), &choice, &[], &|_| false).into_iter().map(|(name, _)| name).collect();
        assert_eq!(kept, ["AYE"], "{choice:?}");
    }
}

#[test]
fn captured_output_is_truncated_at_character_boundaries() {
    let mut captured = OutputCapture::new(100);
    captured.push("ä".repeat(100).as_bytes());
    let text = captured.text(100);
    assert!(!text.contains('\u{FFFD}'), "{text}");
    assert!(text.contains("[... truncated 100 bytes ...]"), "{text}");
    let smaller = captured.text(11);
    assert!(!smaller.contains('\u{FFFD}') && smaller.starts_with("ääää\n"), "{smaller}");
}

/// Checks that every installed shell runs a line without reading the user's configuration.
#[tokio::test]
async fn shells_run_commands_without_user_startup_files() {
    let home = tempfile::tempdir().unwrap();
    for file in [".bashrc", ".profile", ".zshrc", ".zshenv", ".kshrc", ".config/fish/config.fish"] {
        std::fs::create_dir_all(home.path().join(".config/fish")).unwrap();
        std::fs::write(home.path().join(file), "echo set up\n").unwrap();
    }
    let path = std::env::var("PATH").unwrap();
    let own = |name: &str, value: &std::ffi::OsStr| (name.into(), value.to_owned());
    let environment = vec![own("PATH", path.as_ref()), own("HOME", home.path().as_os_str())];
    for shell in super::Shell::ALL {
        let spec = CommandSpec { shell, environment: environment.clone(), ..spec("echo one; echo two") };
        match execute_spec(spec).await {
            Ok(finished) => assert_eq!((shell, finished.stdout.text(100).trim_end()), (shell, "one\ntwo")),
            Err(ProcessError::NoShell(missing)) => eprintln!("skipped: no `{missing}` here"),
            Err(error) => panic!("{shell}: {error}"),
        }
    }
}
