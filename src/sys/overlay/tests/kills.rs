use super::*;
use crate::sys::overlay::recovery::recover_with_hook;
use std::io::Read;
use std::process::{Child, Stdio};

const KILLS: usize = 24;
/// Maximum number of kills per round. It is low enough for some rounds to complete.
const KILLS_OF_ONE: usize = 6;
const CHILD: &str = "sys::overlay::tests::kills::changes_are_committed_until_the_process_is_killed";
const DIRECTORY: &str = "AYE_TEST_LAYER";
const BEGAN: &str = "AYE_TEST_LAYER_BEGAN";
/// Environment variable that contains the number of changes after which the process waits to be killed.
const STOP_AT: &str = "AYE_TEST_LAYER_STOP_AT";
/// Line that the process prints when it is waiting to be killed.
const WAITING: &str = "waiting to be killed";

/// Starts or continues a commit, up to the change at which the process is to be killed.
#[test]
fn changes_are_committed_until_the_process_is_killed() {
    let Some(root) = std::env::var_os(DIRECTORY).map(PathBuf::from) else { return };
    let preview = root.join("preview");
    let layered = LayeredDirectory { directory: root.join("ws"), upper: preview.join("upper"), work: preview.join("work") };
    let began = serde_json::from_str(&std::env::var(BEGAN).unwrap()).unwrap();
    let mut left: usize = std::env::var(STOP_AT).unwrap().parse().unwrap();
    let mut pace = || {
        if left == 0 {
            println!("{WAITING}");
            loop {
                std::thread::park();
            }
        }
        left -= 1;
        Ok(())
    };
    let outcome = if has_begun(&preview) {
        recover_with_hook(&preview, &mut pace).unwrap().unwrap()
    } else {
        commit_at_pace(&preview, &[changes(&layered, began).unwrap()], &mut pace).unwrap()
    };
    assert!(outcome.is_whole(), "{outcome:?}");
}

fn start(place: &Place, stop_at: usize) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", CHILD, "--nocapture"]).env(DIRECTORY, place.lower.parent().unwrap());
    command.env(BEGAN, serde_json::to_string(&place.began).unwrap()).env(STOP_AT, stop_at.to_string());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Kills the process once it is waiting to be killed. Returns whether it got that far.
fn is_killed(mut child: Child) -> bool {
    let mut output = child.stdout.take().unwrap();
    let (mut printed, mut byte) = (Vec::new(), [0]);
    while !printed.ends_with(WAITING.as_bytes()) && output.read(&mut byte).unwrap() > 0 {
        printed.extend(byte);
    }
    let waits = printed.ends_with(WAITING.as_bytes());
    if waits {
        child.kill().unwrap();
    }
    let ended = child.wait_with_output().unwrap();
    assert!(waits || ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    waits
}

#[test]
fn a_repeatedly_killed_commit_is_eventually_complete() {
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
    let (mut kills, mut begun, mut ended) = (0, 0, 0);
    let mut stop_at = 0;
    while kills < KILLS {
        let place = Place::new(many);
        let Some(seen) = place.view(line) else { return };
        let before = place.tree();
        for _ in 0..KILLS_OF_ONE {
            // Stops are spread evenly over all changes, without randomness.
            stop_at = (stop_at + 61) % 307;
            if !is_killed(start(&place, stop_at)) {
                ended += 1;
                break;
            }
            kills += 1;
            // A commit that has not started is discarded, so there is nothing to continue.
            if !has_begun(&place.preview) {
                break;
            }
            begun += 1;
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
    assert!(begun > kills / 2 && ended > 0, "{begun} of {kills} kills hit a commit that had begun, and {ended} commits ended");
}
