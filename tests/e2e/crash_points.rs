//! Sessions killed before and after each of their effects, and again during the resume.
#![cfg(target_os = "linux")]

use crate::support::story::{Commands, Story, Tally};
use crate::support::trace::{Fault, Point};

/// Number of kills per session: the first at a chosen point, the others at random points of later starts.
const KILLS_OF_ONE: usize = 3;
/// Approximate number of effects of a start that only resumes a session.
const EFFECTS_OF_A_START: u64 = 200;

fn killed_at_points(commands: Commands, name: &str, percent: usize) {
    let Some(starts) = Story::new(commands).effects_of_its_starts() else { return };
    // Each effect has one point before and one after it.
    let all = 2 * starts.iter().sum::<usize>();
    let mut tally = Tally::new(name, 9, percent);
    let stories = tally.wanted.div_ceil(KILLS_OF_ONE).max(1);
    for story in 0.. {
        if tally.is_done() {
            break;
        }
        // A long run uses each point. A short run spreads its points evenly.
        let mut at = if stories >= all { story % all } else { story * all / stories + tally.below((all / stories) as u64) } % all;
        let fault = if at % 2 == 0 { Fault::KilledBefore } else { Fault::KilledAfter };
        at /= 2;
        let mut points = Vec::new();
        for &effects in &starts {
            if at < effects {
                points.push(Some(Point { effect: at + 1, fault }));
                break;
            }
            at -= effects;
            points.push(None);
        }
        for _ in 1..KILLS_OF_ONE {
            let effect = 1 + tally.below(EFFECTS_OF_A_START);
            points.push(Some(Point { effect, fault: Fault::KilledBefore }));
        }
        tally.tell(Story::new(commands), &points);
    }
    tally.finish();
}

#[test]
fn a_session_killed_at_any_effect_loses_no_effect_and_repeats_none() {
    killed_at_points(Commands::Bare, "points, commands as they are", 35);
}

#[test]
fn a_previewing_session_killed_at_any_effect_loses_no_effect_and_repeats_none() {
    killed_at_points(Commands::Previewed, "points, commands in previews", 20);
}

#[test]
fn a_layered_command_killed_at_any_effect_keeps_all_its_effects_or_none() {
    killed_at_points(Commands::Layered, "points, commands in layers", 20);
}
