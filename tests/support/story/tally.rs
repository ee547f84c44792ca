//! Statistics of many stories: the requested and actual numbers of faults, and the failures.

use super::Story;
use crate::support::trace::Point;
use std::time::{Duration, Instant};

/// Environment variable with the total number of faults for all tests. Without it, each test makes a few.
const KILLS: &str = "AYE_CRASH_KILLS";
/// Number of failures after which a test stops.
const FAILURES: usize = 12;
const EVERY: usize = 50;

/// Returns the number of faults of a test: `percent` of the number in the environment variable, or `short` without it.
pub fn wanted(short: usize, percent: usize) -> usize {
    let all: Option<usize> = std::env::var(KILLS).ok().and_then(|kills| kills.parse().ok());
    all.map_or(short, |all| (all * percent).div_ceil(100))
}

/// Returns the seed of the random moments, which is the same for all tests of a run. Zero is replaced, because it would
/// choose the same moment each time.
pub fn seed() -> u64 {
    let named = std::env::var("AYE_CRASH_SEED").ok().and_then(|seed| seed.parse().ok());
    named.filter(|seed| *seed != 0).unwrap_or(0x2545_f491_4f6c_dd1d)
}

/// Statistics of one test.
pub struct Tally {
    name: String,
    pub wanted: usize,
    pub done: usize,
    stories: usize,
    began: Instant,
    /// Longest time that a process outlived aye.
    orphans: Duration,
    failures: Vec<String>,
    random: u64,
}

impl Tally {
    /// Creates statistics for `short` faults, or for `percent` of all faults in a long run.
    pub fn new(name: &str, short: usize, percent: usize) -> Self {
        let wanted = wanted(short, percent);
        Self {
            name: name.to_owned(),
            wanted,
            done: 0,
            stories: 0,
            began: Instant::now(),
            orphans: Duration::ZERO,
            failures: Vec::new(),
            random: seed(),
        }
    }

    /// Returns a reproducible pseudo-random number below `limit`.
    pub fn below(&mut self, limit: u64) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random % limit.max(1)) as usize
    }

    pub fn is_done(&self) -> bool {
        self.done >= self.wanted || self.failures.len() >= FAILURES
    }

    /// Runs one story with these faults and counts it.
    pub fn tell(&mut self, mut story: Story, points: &[Option<Point>]) {
        let outcome = story.tell(points);
        self.orphans = self.orphans.max(story.orphans);
        self.count(story.faults, outcome.map_err(|why| format!("{points:?}\n{why}")));
    }

    /// Adds the faults of a story and its result.
    pub fn count(&mut self, faults: usize, outcome: Result<(), String>) {
        let before = self.done / EVERY;
        // A story without a fault counts as one, so that the loop ends.
        self.done += faults.max(1);
        self.stories += 1;
        if let Err(why) = outcome {
            println!("{}: after {} of {}: {why}\n", self.name, self.done, self.wanted);
            self.failures.push(why);
        }
        if self.done / EVERY > before {
            println!("{}", self.words());
        }
    }

    fn words(&self) -> String {
        format!(
            "{}: {} of {} faults in {} stories, {} s, {} wrong, the last process gone after {} ms",
            self.name,
            self.done,
            self.wanted,
            self.stories,
            self.began.elapsed().as_secs(),
            self.failures.len(),
            self.orphans.as_millis()
        )
    }

    /// Prints the statistics. Fails if a story failed.
    #[track_caller]
    pub fn finish(self) {
        println!("{}", self.words());
        assert!(
            self.failures.is_empty(),
            "{} of {} stories went wrong; the first:\n{}",
            self.failures.len(),
            self.stories,
            self.failures[0]
        );
    }
}
