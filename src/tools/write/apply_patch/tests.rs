use super::apply::apply;
use super::parse::{What, parse};
