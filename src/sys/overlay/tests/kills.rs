use super::*;
use std::io::{Read, Write};
use std::process::{Child, ChildStdout, Stdio};
use std::time::{Duration, Instant};

const KILLS: usize = 60;
/// Maximum number of kills per round, so that some rounds complete.
const KILLS_OF_ONE: usize = 6;
const CHILD: &str = "sys::overlay::tests::kills::the_process_that_is_killed";
const DIRECTORY: &str = "AYE_TEST_LAYER";
const BEGAN: &str = "AYE_TEST_LAYER_BEGAN";
/// Printed by the process once it has read what it will commit.
const READY: &str = "ready to commit";

/// Commits, or continues a commit, when it is told to.
#[test]
fn the_process_that_is_killed() {
    let Some(root) = std::env::var_os(DIRECTORY).map(PathBuf::from) else { return };
    let preview = root.join("preview");
    let layered = Layered { directory: root.join("ws"), upper: preview.join("upper"), work: preview.join("work") };
    let began = serde_json::from_str(&std::env::var(BEGAN).unwrap()).unwrap();
    let changes = if has_begun(&preview) { None } else { Some(changes(&layered, began).unwrap()) };
    println!("{READY}");
    let mut line = String::new();
    io::stdin().read_line(&mut line).unwrap();
    let outcome = match changes {
        Some(changes) => commit(&preview, &[changes]).unwrap(),
        None => recover(&preview).unwrap().unwrap(),
    };
    assert!(outcome.is_whole(), "{outcome:?}");
}

fn start(root: &Path, began: Time) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", CHILD, "--nocapture"]).env(DIRECTORY, root).env(BEGAN, serde_json::to_string(&began).unwrap());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Waits until the process is ready, and lets it begin. Returns its output, which must stay open while it runs.
fn begin(child: &mut Child) -> ChildStdout {
    let mut output = child.stdout.take().unwrap();
    let (mut printed, mut byte) = (Vec::new(), [0]);
    while !printed.ends_with(READY.as_bytes()) && output.read(&mut byte).unwrap() > 0 {
        printed.extend(byte);
    }
    child.stdin.take().unwrap().write_all(b"\n").unwrap();
    output
}

/// Returns how long a commit takes that is not killed.
fn duration(root: &Path, began: Time) -> Duration {
    let mut child = start(root, began);
    let _output = begin(&mut child);
    let start = Instant::now();
    assert!(child.wait().unwrap().success());
    start.elapsed()
}

/// Lets the process work for a while and kills it; returns whether it was still running.
fn killed_after(mut child: Child, while_it_works: Duration) -> bool {
    let _output = begin(&mut child);
    std::thread::sleep(while_it_works);
    child.kill().unwrap();
    let ended = child.wait_with_output().unwrap();
    assert!(ended.status.success() || ended.status.code().is_none(), "{}", String::from_utf8_lossy(&ended.stderr));
    !ended.status.success()
}

#[test]
fn a_commit_that_is_killed_again_and_again_is_whole_in_the_end() {
    let many = |lower: &Path| {
        fill(lower);
        for number in 0..120 {
            let directory = lower.join(format!("many/{}", number % 7));
            fs::create_dir_all(&directory).unwrap();
            fs::write(directory.join(number.to_string()), format!("old {number}")).unwrap();
        }
    };
    let line = "cd many; for d in 0 1 2; do for f in $d/*; do echo new >> $f; done; done; rm -r 3 4; mkdir 4; echo x > 4/x; \
                mv 5/5 5/moved; ln 6/6 6/again; chmod 700 6/13; mkdir -p new/er; for n in {1..40}; do echo $n > new/er/$n; done; \
                rm -r 1; echo file > 1; rm ../a; mkdir ../a; touch -d 2001-01-01 ../b";
    let whole = Place::new(many);
    if whole.view(line).is_none() {
        return;
    }
    let duration = duration(whole.lower.parent().unwrap(), whole.began);
    let (mut kills, mut begun) = (0, 0);
    let mut wait = 0_u32;
    while kills < KILLS {
        let place = Place::new(many);
        let Some(seen) = place.view(line) else { return };
        let before = place.tree();
        let root = place.lower.parent().unwrap().to_owned();
        for _ in 0..KILLS_OF_ONE {
            // Spread evenly over the whole duration, without randomness.
            wait = (wait + 617) % 1_000;
            let child = start(&root, place.began);
            if !killed_after(child, duration * wait / 1_000) {
                break;
            }
            kills += 1;
            begun += usize::from(has_begun(&place.preview));
        }
        match recover(&place.preview).unwrap() {
            Some(outcome) => {
                assert!(outcome.is_whole(), "{outcome:?}");
                assert_eq!(place.tree(), seen);
            }
            None => assert_eq!(place.tree(), before),
        }
        assert_eq!(own_names(&place.lower), [""; 0]);
    }
    assert!(begun > KILLS / 10, "only {begun} of {kills} kills hit a commit that had begun");
}
