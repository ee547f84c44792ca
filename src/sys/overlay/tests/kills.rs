use super::*;
use std::io::Write;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

const KILLS: usize = 100;
/// Maximum number of kills per round, so that some rounds complete.
const KILLS_OF_ONE: usize = 6;
const CHILD: &str = "sys::overlay::tests::kills::the_process_that_is_killed";
const DIRECTORY: &str = "AYE_TEST_LAYER";

/// Commits, or continues a commit, when it is told to.
#[test]
fn the_process_that_is_killed() {
    let Some(root) = std::env::var_os(DIRECTORY).map(PathBuf::from) else { return };
    let preview = root.join("preview");
    let layered = Layered { directory: root.join("ws"), upper: preview.join("upper"), work: preview.join("work") };
    let changes = if has_begun(&preview) { None } else { Some(changes(&layered, Time(0, 0)).unwrap()) };
    let mut line = String::new();
    io::stdin().read_line(&mut line).unwrap();
    let outcome = match changes {
        // The time of the view is not tested here.
        Some(mut changes) => {
            changes.began = changes.surveyed;
            commit(&preview, &[changes]).unwrap()
        }
        None => recover(&preview).unwrap().unwrap(),
    };
    assert!(outcome.is_whole(), "{outcome:?}");
}

fn start(root: &Path) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", CHILD, "--nocapture"]).env(DIRECTORY, root);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Lets the process work for a while and kills it; returns whether it was still running.
fn killed_after(mut child: Child, while_it_works: Duration) -> bool {
    child.stdin.take().unwrap().write_all(b"\n").unwrap();
    let end = Instant::now() + while_it_works;
    while Instant::now() < end {
        std::thread::yield_now();
    }
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
    let mut kills = 0;
    let mut wait = 0_u64;
    while kills < KILLS {
        let place = Place::new(many);
        let Some(seen) = place.view(line) else { return };
        let before = place.tree();
        let root = place.lower.parent().unwrap().to_owned();
        for _ in 0..KILLS_OF_ONE {
            // Spread evenly over the whole duration, without randomness.
            wait = (wait + 617) % 9_000;
            let child = start(&root);
            if !killed_after(child, Duration::from_micros(1_000 + wait)) {
                break;
            }
            kills += 1;
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
}
