#![cfg(target_os = "linux")]

mod network;
mod ordinary;

use super::*;
use crate::sys::process::{CommandSpec, End, EnvironmentSelection, FinishedRun, Helper, ProcessError, command_environment, run};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// A directory on disk that contains a workspace. It is outside the paths of which every command has its own copy.
struct Ground {
    directory: tempfile::TempDir,
}

impl Ground {
    fn new() -> Self {
        let program = std::env::current_exe().unwrap();
        let home = std::env::var_os("HOME").map(PathBuf::from);
        let bases = [program.parent().map(PathBuf::from), home, Some("/opt".into()), Some("/var/lib".into())];
        let open = |base: &PathBuf| !["/tmp", "/var/tmp", "/dev", "/run"].iter().any(|own| base.starts_with(own));
        let make = |base: PathBuf| tempfile::Builder::new().prefix("aye-ground-").tempdir_in(base).ok();
        let directory = bases.into_iter().flatten().filter(open).find_map(make);
        let ground = Self { directory: directory.expect("no writable directory outside /tmp; set HOME") };
        fs::create_dir(ground.workspace()).unwrap();
        ground
    }

    fn path(&self, name: &str) -> PathBuf {
        fs::canonicalize(self.directory.path()).unwrap().join(name)
    }

    fn workspace(&self) -> PathBuf {
        self.path("workspace")
    }

    /// Creates a file along with its parent directories, and returns its path.
    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    fn confinement(&self) -> Confinement {
        Confinement::new(Backend::Namespaces, vec![self.workspace()])
    }

    /// Returns a confinement in which the workspace is below a layer.
    fn layered(&self) -> Confinement {
        let (upper, work) = (self.path("upper"), self.path("work"));
        fs::create_dir(&upper).unwrap();
        fs::create_dir(&work).unwrap();
        let layer = LayeredDirectory { directory: self.workspace(), upper, work };
        Confinement { view: View::CopyOnWrite(vec![layer]), ..self.confinement() }
    }
}

fn spec(line: &str, confinement: Confinement) -> CommandSpec {
    CommandSpec {
        shell: crate::sys::process::Shell::Bash,
        proxy: None,
        line: line.to_owned(),
        directory: confinement.roots[0].clone(),
        environment: command_environment(std::env::vars_os(), &EnvironmentSelection::Core, &[], &|_| false),
        stdin: None,
        terminal: None,
        confinement: Some(confinement),
        timeout: Duration::from_secs(60),
        max_output_bytes: 100 * 1024,
        helper: Helper::default(),
    }
}

async fn try_run(line: &str, confinement: Confinement) -> Result<FinishedRun, ProcessError> {
    let (live, _received) = mpsc::channel(1);
    run(spec(line, confinement), live, CancellationToken::new()).await
}

/// Runs a line and returns its output on stdout and stderr.
async fn output(line: &str, confinement: Confinement) -> String {
    let finished = try_run(&format!("exec 2>&1; {line}"), confinement).await.unwrap();
    assert!(matches!(finished.end, End::Exited(_)), "{:?}", finished.end);
    finished.stdout.text(100 * 1024)
}

#[tokio::test]
async fn only_writes_to_the_workspace_are_real() {
    let ground = Ground::new();
    fs::write(ground.path("outside"), "").unwrap();
    let line = format!("id -u; echo a > in; echo b > {}; echo c > /tmp/c; cat in /tmp/c", ground.path("outside").display());
    let text = output(&line, ground.confinement()).await;
    assert!(text.contains("Read-only file system") && text.ends_with("a\nc\n"), "{text}");
    assert_eq!(fs::read_to_string(ground.workspace().join("in")).unwrap(), "a\n");
    assert_eq!(fs::read_to_string(ground.path("outside")).unwrap(), "");
}

#[tokio::test]
async fn writes_in_a_layer_stay_in_the_layer() {
    let ground = Ground::new();
    fs::write(ground.workspace().join("old"), "old\n").unwrap();
    let text = output("echo new >> old; echo a > b; rm -f old; ls", ground.layered()).await;
    assert_eq!(text, "b\n");
    assert_eq!(fs::read_to_string(ground.workspace().join("old")).unwrap(), "old\n");
    assert_eq!(fs::read_to_string(ground.path("upper/b")).unwrap(), "a\n");
    assert_eq!(fs::metadata(ground.path("upper/old")).unwrap().rdev(), 0);
    assert!(!Path::new(&ground.workspace()).join("b").exists());
}

#[tokio::test]
async fn a_command_that_exceeds_the_layer_limit_is_killed() {
    const LIMIT: u64 = 8 << 20;
    let write = |megabytes: u64| format!("mkdir -p a/b; head -c {megabytes}M /dev/zero > a/b/c; sleep 0.6; echo done");
    let limited = |ground: &Ground| {
        let limits = ResourceLimits { layer_bytes: Some(LIMIT), ..ResourceLimits::default() };
        Confinement { limits, ..ground.layered() }
    };
    let ground = Ground::new();
    let finished = try_run(&write(20), limited(&ground)).await.unwrap();
    assert_eq!(finished.end, End::LayerFull, "{finished:?}");
    assert!(!finished.stdout.text(1024).contains("done"));
    let ground = Ground::new();
    assert_eq!(output(&write(4), limited(&ground)).await, "done\n");
    // The real workspace is not a layer.
    let ground = Ground::new();
    let real = Confinement { view: View::Real, ..limited(&ground) };
    assert_eq!(output(&write(20), real).await, "done\n");
}

/// Runs a line that must fail to start, and returns the error message.
async fn refused(line: &str, confinement: Confinement) -> String {
    match try_run(line, confinement).await {
        Err(ProcessError::NotStarted(message)) => message,
        other => panic!("{other:?}"),
    }
}

/// Checks that every one of these lines fails in the sandbox.
async fn all_fail(lines: &[&str], confinement: Confinement) {
    let tried = lines.iter().map(|line| format!("if ( {line} ) >/dev/null 2>&1; then echo {line:?}; fi"));
    let script = tried.collect::<Vec<_>>().join("\n");
    assert_eq!(output(&script, confinement).await, "");
}

fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}

#[tokio::test]
async fn files_outside_the_workspace_cannot_be_deleted() {
    let ground = Ground::new();
    let kept = ground.file("other/kept", "kept");
    let inside = ground.file("workspace/gone", "gone");
    let other = ground.path("other");
    all_fail(&[&format!("touch {}/probe", other.display())], ground.confinement()).await;
    output(&format!("rm -rf {} {}/*", other.display(), ground.workspace().display()), ground.layered()).await;
    assert_eq!(fs::read_to_string(&inside).unwrap(), "gone");
    output(&format!("rm -rf {} {}/*", other.display(), ground.workspace().display()), ground.confinement()).await;
    assert_eq!(fs::read_to_string(kept).unwrap(), "kept");
    assert!(!inside.exists());
}

#[tokio::test]
async fn the_machine_cannot_be_changed() {
    let ground = Ground::new();
    let lines = [
        "echo h > /proc/sysrq-trigger",
        "cat /proc/sys/kernel/printk > /proc/sys/kernel/printk",
        "cat /proc/sys/vm/swappiness > /proc/sys/vm/swappiness",
        "cat /proc/sys/kernel/hostname > /proc/sys/kernel/hostname",
        "echo 0 > /proc/self/oom_score_adj",
        "head -c 1 /proc/keys | grep -q .",
        "chmod 600 /dev/null",
        "rm /dev/null",
        "touch /dev/new /sys/new /run/new /new",
        "chmod 700 /proc/sys /sys/kernel",
        "mknod device b 254 0",
        "mknod device c 1 3",
        "test -e /dev/vda || test -e /dev/sda || test -e /dev/nvme0n1 || test -e /dev/mem || test -e /dev/fuse || test -e /dev/kvm",
        "head -c 1 /proc/kcore | grep -q .",
        "hostname other",
        "dmesg",
        "date -s 2020-01-01",
    ];
    all_fail(&lines, ground.confinement()).await;
    all_fail(&lines, ground.layered()).await;
}

#[tokio::test]
async fn mounts_and_namespaces_cannot_be_changed() {
    let ground = Ground::new();
    let hidden = ground.file("workspace/hidden", "secret");
    let confinement = || Confinement { hidden: vec![hidden.clone()], ..ground.confinement() };
    let (at, base) = (hidden.display().to_string(), ground.path("").display().to_string());
    let lines = [
        format!("umount {at}"),
        format!("umount -l {at}"),
        "umount /tmp".to_owned(),
        "umount -l /proc".to_owned(),
        "mount -o remount,rw /".to_owned(),
        format!("mount -o remount,rw,bind {base}"),
        "mount -t tmpfs none /tmp".to_owned(),
        "mount --bind / /tmp".to_owned(),
        "unshare -Ur true".to_owned(),
        format!("unshare -Urm umount -l {at}"),
        "unshare -m true".to_owned(),
        "unshare -n true".to_owned(),
        "chroot / true".to_owned(),
        "nsenter -t 1 -m true".to_owned(),
        format!("rm -f {at}"),
        format!("mv {at} other"),
        format!("cat {at} | grep -q ."),
    ];
    all_fail(&lines.each_ref().map(String::as_str), confinement()).await;
}

#[tokio::test]
async fn no_file_descriptor_or_process_escapes_the_sandbox() {
    let ground = Ground::new();
    let outside = ground.file("outside", "kept");
    // This descriptor simulates one that a careless program passes on.
    let inherited = fs::File::open(ground.path("")).unwrap();
    nix::fcntl::fcntl(&inherited, nix::fcntl::FcntlArg::F_SETFD(nix::fcntl::FdFlag::empty())).unwrap();
    let at = outside.display();
    let lines = [
        format!("echo x > /proc/self/root{at}"),
        format!("echo x > /proc/1/root{at}"),
        "for f in 0 1 2 3 4 5 6 7 8; do readlink /proc/1/fd/$f && exit 0; done; exit 1".to_owned(),
        "echo x > /proc/1/fd/0".to_owned(),
        "ls /proc/1/cwd/".to_owned(),
        "cat /proc/1/environ | grep -q .".to_owned(),
        "cat /proc/1/mem".to_owned(),
        "for f in /proc/self/fd/*; do test -d $f/workspace && exit 0; done; exit 1".to_owned(),
    ];
    all_fail(&lines.each_ref().map(String::as_str), ground.confinement()).await;
    assert_eq!(fs::read_to_string(&outside).unwrap(), "kept");
    let text = output(
        "for f in /proc/self/fd/*; do readlink $f; done | grep -v ^pipe: | sort; ps ax 2>/dev/null | wc -l",
        ground.confinement(),
    )
    .await;
    assert!(text.starts_with("/dev/null\n") && text.lines().count() <= 3, "{text}");
}

#[tokio::test]
async fn privileges_cannot_be_gained() {
    let ground = Ground::new();
    let text = output(
        "grep -E 'NoNewPrivs|Cap(Eff|Bnd|Amb)' /proc/self/status; grep -v nosuid /proc/self/mountinfo",
        ground.confinement(),
    )
    .await;
    assert!(text.contains("NoNewPrivs:\t1") && text.contains("CapAmb:\t0000000000000000"), "{text}");
    assert!(!text.contains('/'), "all mounts are without setuid: {text}");
    let effective = text.lines().find_map(|line| line.strip_prefix("CapEff:\t")).unwrap();
    let effective = u64::from_str_radix(effective, 16).unwrap();
    assert_eq!(effective & !0x4fb, 0, "{text}");
    assert!(is_root() || effective == 0, "{text}");
}

#[tokio::test]
async fn sockets_of_other_processes_are_unreachable() {
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::{SocketAddr, UnixListener};
    let ground = Ground::new();
    if std::process::Command::new("perl").args(["-MSocket", "-e", "1"]).status().is_ok_and(|status| status.success()) {
        let name = format!("aye-test-{}", std::process::id());
        let served = [ground.path("docker.sock"), ground.path("workspace/agent.sock"), ground.path("a socket")];
        let _listeners: Vec<_> = served.iter().map(|path| UnixListener::bind(path).unwrap()).collect();
        let _abstract = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
        let connect = |address: &str| {
            format!(
                "perl -MSocket -e 'socket(S, AF_UNIX, SOCK_STREAM, 0) or exit 2; exit(connect(S, pack_sockaddr_un({address})) ? 0 : 1)'"
            )
        };
        let mut lines: Vec<_> = served.iter().map(|path| connect(&format!("\"{}\"", path.display()))).collect();
        for line in &lines {
            assert!(std::process::Command::new("bash").args(["-c", line]).status().unwrap().success(), "{line}");
        }
        lines.push(connect(&format!("\"\\0{name}\"")));
        let lines: Vec<_> = lines.iter().map(String::as_str).collect();
        all_fail(&lines, ground.confinement()).await;
        all_fail(&lines, Confinement { network: NetworkAccess::Open, ..ground.layered() }).await;
    } else {
        println!("skipped: perl, needed to connect, is not installed");
    }
}

#[tokio::test]
async fn sockets_that_appear_and_disappear_during_setup_cause_no_error() {
    use std::os::unix::net::UnixListener;
    let ground = Ground::new();
    let stop = CancellationToken::new();
    let churn = {
        let (place, stop) = (ground.path("comes and goes"), stop.clone());
        std::thread::spawn(move || {
            while !stop.is_cancelled() {
                drop(UnixListener::bind(&place).unwrap());
                fs::remove_file(&place).unwrap();
            }
        })
    };
    for _ in 0..20 {
        assert_eq!(output("echo done", ground.confinement()).await, "done\n");
    }
    stop.cancel();
    churn.join().unwrap();
}

#[tokio::test]
async fn hidden_paths_appear_empty() {
    let ground = Ground::new();
    let key = ground.file("home/.ssh/id", "secret");
    let environment = ground.file("workspace/.env", "secret");
    let hidden = vec![key.parent().unwrap().to_owned(), environment.clone(), ground.path("workspace/missing")];
    let confinement = Confinement { hidden, ..ground.confinement() };
    let line = format!("cat {}; ls -A {}; cat .env; ls -A; echo x > .env", key.display(), ground.path("home/.ssh").display());
    let text = output(&line, confinement.clone()).await;
    assert!(!text.contains("secret") && text.contains("No such file") && text.contains("Read-only"), "{text}");
    let layered = Confinement { view: ground.layered().view, ..confinement };
    let text = output(&line, layered).await;
    assert!(!text.contains("secret") && text.contains("Read-only"), "{text}");
    assert_eq!(fs::read_to_string(environment).unwrap(), "secret");
}

#[tokio::test]
async fn thousands_of_paths_can_be_hidden() {
    let ground = Ground::new();
    let hidden: Vec<_> = (0..3000).map(|number| ground.file(&format!("workspace/many/{number}"), "secret")).collect();
    let confinement = Confinement { hidden, ..ground.confinement() };
    assert_eq!(output("cat many/* 2>/dev/null | wc -c", confinement).await, "0\n");
}

#[tokio::test]
async fn read_only_paths_cannot_be_moved() {
    let ground = Ground::new();
    ground.file("workspace/.git/config", "config");
    ground.file("workspace/.git/hooks/post", "hook");
    ground.file("workspace/.git/objects/a", "a");
    let git = |name: &str| ground.path("workspace/.git").join(name);
    let read_only = vec![git("hooks"), git("config"), git("info")];
    let confinement = Confinement { read_only, ..ground.confinement() };
    let lines = [
        "echo x > .git/config",
        "rm .git/config",
        "mv .git/config c",
        "touch .git/hooks/new",
        "mv .git/hooks .git/h",
        "mv .git g",
        "rm -rf .git",
        "mkdir .git/info && touch .git/info/x",
        "touch .git/info/attributes",
        "rmdir .git/info",
        "echo x > .git/info",
        "chmod 777 .git/info",
    ];
    all_fail(&lines, confinement.clone()).await;
    assert_eq!(fs::read_to_string(git("config")).unwrap(), "config");
    assert_eq!(fs::read_to_string(git("hooks/post")).unwrap(), "hook");
    assert!(!git("info").exists(), "the placeholder was removed");
    assert_eq!(output("echo y > .git/new; cat .git/new", confinement).await, "y\n");
}

#[tokio::test]
async fn hidden_paths_cannot_be_moved_to_a_visible_location() {
    let ground = Ground::new();
    let key = ground.file("workspace/deep/secrets/key", "secret");
    let confinement = Confinement { hidden: vec![key.clone()], ..ground.confinement() };
    let lines = [
        "mv deep/secrets shown",
        "mv deep shown",
        "mv deep/secrets/key shown",
        "ln deep/secrets/key shown",
        "rm -rf deep",
        "grep -r secret .",
    ];
    all_fail(&lines, confinement).await;
    assert_eq!(fs::read_to_string(key).unwrap(), "secret");
}

#[tokio::test]
async fn a_writable_directory_cannot_be_recreated_without_its_read_only_files() {
    let ground = Ground::new();
    ground.file("workspace/a/sub/.git/config", "config");
    let git = ground.path("workspace/a/sub/.git");
    let read_only = vec![git.join("config"), git.join("hooks")];
    let confinement = Confinement { writable: vec![git.clone()], read_only, ..ground.confinement() };
    all_fail(&["mv a/sub x", "mv a x", "mv a/sub/.git x", "rm -rf a"], confinement.clone()).await;
    assert_eq!(output("echo new > a/sub/.git/index; cat a/sub/.git/index", confinement).await, "new\n");
    assert_eq!(fs::read_to_string(git.join("config")).unwrap(), "config");
}

#[tokio::test]
async fn a_repository_cannot_be_redirected_to_another_configuration() {
    use std::os::unix::fs::PermissionsExt;
    let ground = Ground::new();
    ground.file("workspace/.git/config", "config");
    let git = ground.path("workspace/.git");
    let pointer = git.join("commondir");
    let confinement = Confinement { read_only: vec![git.join("config"), pointer.clone()], ..ground.confinement() };
    let lines = ["echo ../evil > .git/commondir", "rm .git/commondir", "mv .git/commondir x", "mv evil .git/commondir"];
    all_fail(&lines, confinement.clone()).await;
    // With this content, git uses the same directory.
    assert_eq!(output("cat .git/commondir", confinement.clone()).await, ".\n");
    assert!(!pointer.exists(), "the placeholder was removed");
    // A file left behind by a crash is reused.
    fs::write(&pointer, ".\n").unwrap();
    fs::set_permissions(&pointer, fs::Permissions::from_mode(0o1444)).unwrap();
    all_fail(&lines, confinement.clone()).await;
    assert!(!pointer.exists());
    // A file of the user is preserved.
    fs::write(&pointer, "..").unwrap();
    all_fail(&lines, confinement).await;
    assert_eq!(fs::read_to_string(pointer).unwrap(), "..");
}

#[tokio::test]
async fn set_user_id_bits_cannot_be_created() {
    let ground = Ground::new();
    let set_id = "touch f; chmod u+s f; chmod 4755 f; install -m 4755 /bin/true g; umask 0; cp --preserve=mode /usr/bin/su h; \
                  python3 -c 'import os; os.open(\"i\", os.O_CREAT, 0o4755)'; find . -perm -4000; chmod 2755 .; chmod 1755 f; chmod 755 f; ls f";
    let text = output(set_id, ground.confinement()).await;
    assert!(text.contains("Operation not permitted") && text.ends_with("f\n"), "{text}");
    for entry in fs::read_dir(ground.workspace()).unwrap() {
        let entry = entry.unwrap();
        assert_eq!(entry.metadata().unwrap().mode() & 0o4000, 0, "{:?}", entry.path());
    }
}

#[tokio::test]
async fn set_group_id_bits_cannot_be_created() {
    let ground = Ground::new();
    let set_id = "touch f d; chmod g+s f; chmod 2755 f; chmod 6755 f; install -m 2755 /bin/true g; umask 0; \
                  perl -e 'use Fcntl; sysopen(F, \"i\", O_CREAT | O_RDWR, 02755)'; chmod g=u f; chmod 755 f; ls f";
    let text = output(set_id, ground.confinement()).await;
    assert!(text.contains("Operation not permitted") && text.ends_with("f\n"), "{text}");
    for entry in fs::read_dir(ground.workspace()).unwrap() {
        let entry = entry.unwrap();
        assert_eq!(entry.metadata().unwrap().mode() & 0o6000, 0, "{:?}", entry.path());
    }
}

#[tokio::test]
async fn tmpfs_and_shared_memory_are_within_the_memory_limit() {
    const LIMIT: u64 = 64 << 20;
    let ground = Ground::new();
    let limits = ResourceLimits { memory_bytes: Some(LIMIT), ..ResourceLimits::default() };
    let confinement = || Confinement { limits, ..ground.confinement() };
    let text = output("stat -f -c '%b %S' /tmp /dev/shm", confinement()).await;
    let sizes = text.lines().map(|line| line.split(' ').map(|number| number.parse::<u64>().unwrap()).product::<u64>());
    assert!(sizes.clone().count() == 2 && sizes.into_iter().all(|bytes| bytes < LIMIT), "{text}");
    let text =
        output("head -c 40M /dev/zero > /tmp/a; head -c 40M /dev/zero > /dev/shm/b; du -sc -B1 /tmp /dev/shm", confinement())
            .await;
    let total: u64 = text.lines().last().and_then(|line| line.split('\t').next()?.parse().ok()).unwrap();
    assert!(text.contains("No space left") && total <= LIMIT, "{text}");
    // The rest of the limit is for System V shared memory.
    let script = "perl -MIPC::SysV=IPC_PRIVATE,IPC_CREAT -e 'my $sum = 0; for (1..100) { shmget(IPC_PRIVATE, 1 << 20, \
                  IPC_CREAT | 0600) // last; $sum += 1 << 20 } print \"sum $sum\\n\"'";
    let text = output(script, confinement()).await;
    if let Some(sum) = text.lines().find_map(|line| line.strip_prefix("sum ")) {
        assert!(sum.parse::<u64>().unwrap() <= LIMIT / 4, "{text}");
    }
}

#[tokio::test]
async fn hidden_directories_show_links_and_substituted_content() {
    let ground = Ground::new();
    ground.file("home/tools/v1/bin/x", "x");
    ground.file("home/secret", "secret");
    ground.file("own/cache/seen", "own");
    ground.file("home/.cache/pip/real", "real");
    ground.file("home/.cache/browser", "secret");
    fs::create_dir(ground.path("own/cache/pip")).unwrap();
    let confinement = Confinement {
        hidden: vec![ground.path("home")],
        shown: vec![ground.path("home/tools/v1"), ground.path("home/.cache/pip"), ground.path("home/gone")],
        links: vec![(ground.path("home/tools/current"), "v1".into()), (ground.path("home/tools/v1/none"), "v1".into())],
        substitutes: vec![Substitute { directory: ground.path("home/.cache"), content: ground.path("own/cache") }],
        ..ground.confinement()
    };
    let line = format!(
        "cd {}; cat tools/current/bin/x; ls -A . .cache; echo new > .cache/new; echo no > tools/v1/no; cat secret",
        ground.path("home").display()
    );
    let text = output(&line, confinement).await;
    assert!(text.starts_with("x.:\n.cache\ntools\n\n.cache:\npip\nseen\n"), "{text}");
    assert!(text.ends_with("secret: No such file or directory\n"), "{text}");
    assert_eq!(fs::read_to_string(ground.path("own/cache/new")).unwrap(), "new\n");
    assert!(!ground.path("home/tools/v1/no").exists() && !ground.path("home/.cache/new").exists());
}

#[tokio::test]
async fn protected_links_can_be_neither_removed_nor_retargeted() {
    let ground = Ground::new();
    ground.file("workspace/real", "kept");
    let link = ground.path("workspace/.envrc");
    std::os::unix::fs::symlink("real", &link).unwrap();
    let confinement = Confinement { read_only: vec![link.clone()], ..ground.confinement() };
    all_fail(&["rm .envrc", "mv .envrc x", "ln -sfn /etc .envrc", "rm -f .envrc"], confinement.clone()).await;
    assert_eq!(output("cat .envrc", confinement).await, "kept");
    assert_eq!(fs::read_link(link).unwrap(), Path::new("real"));
}

#[tokio::test]
async fn reopened_paths_are_writable() {
    let ground = Ground::new();
    ground.file("workspace/.git/objects/a", "a");
    ground.file("workspace/.git/b", "b");
    let git = |name: &str| ground.path("workspace").join(name);
    let confinement = Confinement {
        read_only: vec![git(".git"), git(".git/objects/info")],
        reopened: vec![git(".git/objects")],
        ..ground.confinement()
    };
    all_fail(&["echo x > .git/b", "mv .git g", "mkdir -p .git/objects/info/x"], confinement.clone()).await;
    output("echo x > .git/objects/new", confinement.clone()).await;
    assert_eq!(fs::read_to_string(git(".git/objects/new")).unwrap(), "x\n");
    let closed = Confinement { view: View::ReadOnly, ..confinement };
    all_fail(&["echo x > .git/objects/new", "touch x", "touch .git/x"], closed).await;
}

#[tokio::test]
async fn missing_protected_paths_cannot_be_created_and_leave_no_placeholder() {
    let ground = Ground::new();
    let names = [".git/hooks", ".git/config", ".aye", "a/b/.git"];
    let read_only: Vec<_> = names.iter().map(|name| ground.path("workspace").join(name)).collect();
    let confinement = Confinement { read_only, ..ground.confinement() };
    let lines =
        ["mkdir -p .git/hooks && touch .git/hooks/x", "git init . ", "touch .aye/x", "rm -rf .aye", "mkdir -p a/b/.git/x"];
    all_fail(&lines, confinement.clone()).await;
    assert_eq!(fs::read_dir(ground.workspace()).unwrap().count(), 0);
    // The command that ends first must not remove the other's placeholder.
    let long =
        tokio::spawn(try_run("while ! test -e go; do sleep 0.01; done; touch .git/x; mkdir .git/hooks", confinement.clone()));
    output("while ! test -d .git; do sleep 0.01; done", confinement.clone()).await;
    output("true", confinement.clone()).await;
    fs::write(ground.path("workspace/go"), "").unwrap();
    let finished = long.await.unwrap().unwrap();
    assert_ne!(finished.end, End::Exited(0), "{}", finished.stdout.text(1000));
    fs::remove_file(ground.path("workspace/go")).unwrap();
    assert_eq!(fs::read_dir(ground.workspace()).unwrap().count(), 0);
}

#[tokio::test]
async fn placeholders_left_by_a_crash_are_taken_over() {
    use std::os::unix::fs::PermissionsExt;
    let ground = Ground::new();
    let git = ground.path("workspace/.git");
    fs::create_dir(&git).unwrap();
    fs::set_permissions(&git, fs::Permissions::from_mode(0o1555)).unwrap();
    let confinement = Confinement { read_only: vec![git.clone()], ..ground.confinement() };
    all_fail(&["touch .git/x", "rmdir .git"], confinement).await;
    assert!(!git.exists());
}

#[tokio::test]
async fn a_workspace_may_be_in_any_directory() {
    let name = "aye-anywhere-";
    let bases = ["/tmp", "/var/tmp", "/dev/shm"].into_iter().map(PathBuf::from).filter(|base| base.is_dir());
    for base in bases {
        let directory = tempfile::Builder::new().prefix(name).tempdir_in(&base).unwrap();
        fs::write(directory.path().join("beside"), "secret").unwrap();
        let workspace = directory.path().join("a/workspace");
        fs::create_dir_all(&workspace).unwrap();
        let ground = Ground::new();
        let confinement = Confinement { roots: vec![workspace.clone()], ..ground.confinement() };
        let text = output("pwd; ls -A ../..; echo x > made; ls", confinement.clone()).await;
        assert_eq!(text, format!("{}\na\nmade\n", workspace.display()));
        assert!(workspace.join("made").exists());
        let (upper, work) = (ground.path("upper"), ground.path("work"));
        fs::create_dir(&upper).unwrap();
        fs::create_dir(&work).unwrap();
        let layer = LayeredDirectory { directory: workspace.clone(), upper: upper.clone(), work };
        let text =
            output("rm made; echo y > other; ls", Confinement { view: View::CopyOnWrite(vec![layer]), ..confinement }).await;
        assert_eq!(text, "other\n");
        assert!(workspace.join("made").exists() && upper.join("other").exists());
    }
}

#[tokio::test]
async fn only_the_workspace_is_visible_in_a_hidden_directory() {
    let ground = Ground::new();
    ground.file("secrets/key", "secret");
    let workspace = ground.path("secrets/deep/workspace");
    fs::create_dir_all(&workspace).unwrap();
    let confinement =
        Confinement { roots: vec![workspace.clone()], hidden: vec![ground.path("secrets")], ..ground.confinement() };
    let text = output("ls -A ../..; echo x > made; touch ../x", confinement.clone()).await;
    assert!(text.starts_with("deep\n") && text.contains("Read-only"), "{text}");
    assert!(workspace.join("made").exists());
    let both = Confinement { hidden: vec![workspace], ..confinement };
    assert!(refused("true", both).await.contains("both a workspace and hidden"));
}

#[tokio::test]
async fn the_root_directory_can_be_a_workspace_but_not_with_a_layer() {
    let ground = Ground::new();
    let confinement = Confinement { roots: vec!["/".into()], ..ground.confinement() };
    let file = ground.path("made");
    all_fail(&["touch /proc/sys/x", "echo h > /proc/sysrq-trigger", "touch /dev/x", "touch /run/x"], confinement.clone()).await;
    output(&format!("echo x > {}; echo y > /tmp/aye-not-there", file.display()), confinement.clone()).await;
    assert!(file.exists() && !Path::new("/tmp/aye-not-there").exists());
    let View::CopyOnWrite(mut layers) = ground.layered().view else { panic!() };
    layers[0].directory = "/".into();
    let message = refused("true", Confinement { view: View::CopyOnWrite(layers), ..confinement }).await;
    assert!(message.starts_with("cannot set up the sandbox: "), "{message}");
}

#[tokio::test]
async fn a_link_in_place_of_a_workspace_root_is_not_followed() {
    let ground = Ground::new();
    let kept = ground.file("other/kept", "kept");
    let link = ground.path("link");
    std::os::unix::fs::symlink(ground.path("other"), &link).unwrap();
    for confinement in [ground.confinement(), Confinement { view: View::ReadOnly, ..ground.confinement() }] {
        let message = refused("rm kept", Confinement { roots: vec![link.clone()], ..confinement }).await;
        assert!(message.contains("link"), "{message}");
    }
    let message = refused("true", Confinement { hidden: vec![link.join("kept")], ..ground.confinement() }).await;
    assert!(message.contains("link"), "{message}");
    assert_eq!(fs::read_to_string(kept).unwrap(), "kept");
    // From inside the sandbox, the root cannot be replaced.
    all_fail(&["cd ..; mv workspace w", "cd ..; rmdir workspace", "cd /; ln -sfn / $OLDPWD"], ground.confinement()).await;
}

#[tokio::test]
async fn package_cache_writes_go_to_a_copy_shared_with_the_next_command() {
    let ground = Ground::new();
    let old = ground.file("cache/old", "old");
    let layered = ground.layered();
    let View::CopyOnWrite(layers) = layered.view else { panic!() };
    let cache = LayeredDirectory { directory: ground.path("cache"), ..layers[0].clone() };
    let line = format!("cd {}; cat old; echo new > new; rm old; ls", ground.path("cache").display());
    let held = Confinement { caches: vec![cache], ..ground.confinement() };
    assert_eq!(output(&line, held.clone()).await, "oldnew\n");
    assert!(old.exists() && ground.path("upper/new").exists());
    // The next command sees the copy.
    assert_eq!(output(&format!("cat {}/new", ground.path("cache").display()), held).await, "new\n");
}

#[tokio::test]
async fn dns_configuration_and_terminals_are_available() {
    let ground = Ground::new();
    let resolver = fs::read_to_string("/etc/resolv.conf").unwrap_or_default();
    let text = output(
        "cat /etc/resolv.conf 2>/dev/null; echo -; ls /dev /dev/pts; echo x > /dev/null; cat < /dev/zero | head -c 0",
        ground.confinement(),
    )
    .await;
    assert!(text.starts_with(&format!("{resolver}-\n")), "{text}");
    assert!(text.ends_with("/dev/pts:\nptmx\n"), "{text}");
}

/// Returns the processes whose command line contains `word`, except this one.
fn running(word: &str) -> Vec<i32> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.filter(|pid| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        *pid != std::process::id().cast_signed() && String::from_utf8_lossy(&line).contains(word)
    })
    .collect()
}

fn parent(pid: i32) -> i32 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(1)?.parse().ok()).unwrap_or(0)
}

#[track_caller]
fn until(condition: impl Fn() -> bool) {
    let start = std::time::Instant::now();
    while !condition() {
        assert!(start.elapsed() < Duration::from_secs(60), "the condition never became true");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Returns a number for `sleep` that no other process's command line contains.
fn word() -> String {
    format!("8{:08}.{}", std::process::id(), uuid::Uuid::new_v4().as_u128() % 1_000_000_000)
}

#[tokio::test]
async fn a_command_that_kills_everything_kills_itself() {
    let ground = Ground::new();
    let word = word();
    let mut bystander = std::process::Command::new("sleep").arg(&word).spawn().unwrap();
    for line in [
        format!("(setsid sleep {word}.1 &); kill -9 -1"),
        format!("(setsid bash -c 'setsid sleep {word}.1 &' &); sleep 0.1; exit 0"),
    ] {
        let _ = try_run(&line, ground.confinement()).await.unwrap();
        assert_eq!(running(&format!("{word}.1")), Vec::<i32>::new());
        assert!(bystander.try_wait().unwrap().is_none(), "processes outside survive");
    }
    bystander.kill().unwrap();
    bystander.wait().unwrap();
}

#[tokio::test]
async fn no_process_survives_a_killed_helper() {
    let ground = Ground::new();
    let word = word();
    let git = ground.path("workspace/.git");
    let confinement = Confinement { read_only: vec![git.clone()], ..ground.confinement() };
    let line = format!("trap '' TERM; (setsid sleep {word} &); touch started; sleep {word}");
    let held = confinement.clone();
    let task = tokio::spawn(async move { try_run(&line, held).await });
    let started = ground.path("workspace/started");
    tokio::task::spawn_blocking(move || until(|| started.exists())).await.unwrap();
    let mut helper = running(&word)[0];
    while parent(helper) != std::process::id().cast_signed() {
        helper = parent(helper);
        assert!(helper > 1);
    }
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(helper), nix::sys::signal::Signal::SIGKILL).unwrap();
    assert!(matches!(task.await.unwrap(), Err(ProcessError::HelperLost)));
    until(|| running(&word).is_empty());
    // After the next command, the name is free again.
    output("true", confinement).await;
    assert!(!git.exists());
}

#[tokio::test]
async fn stdin_and_a_subdirectory_as_working_directory_are_supported() {
    let ground = Ground::new();
    fs::create_dir(ground.path("workspace/below")).unwrap();
    for confinement in [ground.confinement(), ground.layered()] {
        let spec = CommandSpec {
            stdin: Some("text".into()),
            directory: ground.path("workspace/below"),
            ..spec("cat; pwd; cat", confinement)
        };
        let (live, _received) = mpsc::channel(1);
        let finished = run(spec, live, CancellationToken::new()).await.unwrap();
        assert_eq!(finished.stdout.text(1000), format!("text{}\n", ground.path("workspace/below").display()));
    }
}

#[test]
fn the_probe_detects_the_available_sandbox_tier() {
    let ground = Ground::new();
    let program = std::env::current_exe().unwrap();
    let data = ground.path("data");
    let found = probe(&program, &[ground.workspace()], &data);
    assert_eq!(found, Probe { tier: Tier::Layers, missing: vec![], upper_base: Some(data.clone()) });
    assert_eq!(fs::read_dir(&data).unwrap().count(), 0, "the probe leaves nothing behind");
    let everywhere = probe(&program, &["/".into()], &data);
    assert_eq!((everywhere.tier, everywhere.upper_base), (Tier::Namespaces, None));
    assert!(everywhere.missing[0].contains("mounted inside the workspace (`/"), "{:?}", everywhere.missing);
}

#[test]
fn the_disk_quota_leaves_room_for_other_programs() {
    const GB: u64 = 1 << 30;
    for (all, free, short) in
        [(100 * GB, GB, false), (100 * GB, GB / 8, true), (GB, GB / 8, false), (GB, GB / 32, true), (0, 0, false)]
    {
        assert_eq!(disk_quota::is_too_little(all, free), short, "{free} of {all}");
    }
}
