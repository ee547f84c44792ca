//! Disk errors at the N-th effect: full or failing disks, once or permanently.
#![cfg(target_os = "linux")]

use crate::support::story::{Commands, Story, Tally};
use crate::support::trace::{Fault, Point};

/// Number of leading effects that a long run covers with every kind of fault.
const DEEPEST: usize = 300;

fn faults(number: usize) -> Fault {
    match number % 6 {
        0 => Fault::Fails(libc::ENOSPC),
        1 => Fault::Fails(libc::EIO),
        2 => Fault::FailsFromHereOn(libc::ENOSPC),
        3 => Fault::FailsFromHereOn(libc::EIO),
        4 => Fault::FailsAlways(libc::ENOSPC),
        _ => Fault::FailsAlways(libc::EIO),
    }
}

fn failing_at_points(commands: Commands, name: &str, percent: usize) {
    let Some(starts) = Story::new(commands).effects_of_its_starts() else { return };
    let mut tally = Tally::new(name, 4, percent);
    let wanted = tally.wanted.min(DEEPEST * 6);
    for story in 0..wanted {
        if tally.is_done() {
            break;
        }
        // A long run tries every kind of fault at each effect. A short run spreads its faults over the first start.
        let effect =
            if wanted >= DEEPEST * 6 { story / 6 } else { story * starts[0] / wanted + tally.below((starts[0] / wanted) as u64) };
        tally.tell(Story::new(commands), &[Some(Point { effect: effect + 1, fault: faults(story) })]);
    }
    tally.finish();
}

#[test]
fn disk_errors_at_any_point_lose_no_acknowledged_record() {
    failing_at_points(Commands::Bare, "errors, commands as they are", 10);
}

#[test]
fn disk_errors_during_previews_lose_no_acknowledged_record() {
    failing_at_points(Commands::Previewed, "errors, commands in previews", 8);
}

/// A command or a write whose record cannot be synced is not reported as done, and no further effect follows.
#[test]
fn no_further_effect_runs_after_a_failed_journal_sync() {
    let mut calm = Story::new(Commands::Bare);
    let traced = match calm.start(None) {
        Ok(traced) => traced,
        Err(why) => return println!("skipped: {why}"),
    };
    // SQLite syncs the log again before it copies the log into the main file. The content was already synced before.
    let is_copied = |at: usize| {
        let mut after = traced.effects.iter().skip(at + 1).filter(|effect| effect.contains(" aye.db"));
        after.next().is_some_and(|effect| effect == "pwrite64 aye.db")
    };
    let is_commit = |&at: &usize| traced.effects[at] == "fsync aye.db-wal" && !is_copied(at);
    let syncs: Vec<usize> = (0..traced.effects.len()).filter(is_commit).collect();
    assert!(syncs.len() > 4, "{:?}", traced.effects);
    let mut tally = Tally::new("syncs of the journal", 3, 1);
    let step = syncs.len().div_ceil(tally.wanted).max(1);
    for at in syncs.into_iter().step_by(step) {
        let point = Point { effect: at + 1, fault: Fault::FailsAlways(libc::EIO) };
        let mut story = Story::new(Commands::Bare);
        let traced = story.start(Some(point)).unwrap();
        let outcome = story.judge(&traced).and_then(|()| {
            let hit = traced.effects.get(at).filter(|hit| *hit == "fsync aye.db-wal");
            let after = traced.effects.iter().skip(at).find(|effect| effect.contains("ledger") || effect.contains(".txt"));
            match (hit, after) {
                (Some(_), Some(effect)) => Err(format!("it went on to `{effect}`")),
                (Some(_), None) if traced.code != 1 || !traced.stdout.contains("annot save this session") => {
                    Err(format!("exit {}: {}\n{}", traced.code, traced.stderr, traced.stdout))
                }
                _ => Ok(()),
            }
        });
        tally.count(1, outcome.and_then(|()| story.tell(&[])).map_err(|why| format!("{point:?}: {why}")));
    }
    tally.finish();
}
