//! Many stories: how many kills are wanted, how many there were, and what went wrong.

use super::Story;
use crate::support::trace::Point;
use std::time::{Duration, Instant};

/// Says how many faults all tests make together; without it they make few.
const KILLS: &str = "AYE_CRASH_KILLS";
/// What is the same for all is seen by then.
const FAILURES: usize = 12;
const EVERY: usize = 50;

/// How many faults a test makes: its share of what the environment says, else `short`.
pub fn wanted(short: usize, percent: usize) -> usize {
    let all: Option<usize> = std::env::var(KILLS).ok().and_then(|kills| kills.parse().ok());
    all.map_or(short, |all| (all * percent).div_ceil(100))
}

/// Chooses the moments: the same for all tests of one run. Zero would choose the same one each time.
pub fn seed() -> u64 {
    let named = std::env::var("AYE_CRASH_SEED").ok().and_then(|seed| seed.parse().ok());
    named.filter(|seed| *seed != 0).unwrap_or(0x2545_f491_4f6c_dd1d)
}

/// The count of one test.
pub struct Tally {
    name: String,
    pub wanted: usize,
    pub done: usize,
    stories: usize,
    began: Instant,
    /// The longest that anything outlived aye.
    orphans: Duration,
    failures: Vec<String>,
    random: u64,
}

impl Tally {
    /// `short` faults, or in a long run `percent` of all.
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

    /// Numbers that look random and are the same each time.
    pub fn below(&mut self, limit: u64) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random % limit.max(1)) as usize
    }

    pub fn is_done(&self) -> bool {
        self.done >= self.wanted || self.failures.len() >= FAILURES
    }

    /// One story with these faults.
    pub fn tell(&mut self, mut story: Story, points: &[Option<Point>]) {
        let outcome = story.tell(points);
        self.orphans = self.orphans.max(story.orphans);
        self.count(story.faults, outcome.map_err(|why| format!("{points:?}\n{why}")));
    }

    /// So many faults more, and what came of them.
    pub fn count(&mut self, faults: usize, outcome: Result<(), String>) {
        let before = self.done / EVERY;
        // One that met no fault counts too, or there would be no end.
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

    /// Says how it went, and fails where anything did.
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
