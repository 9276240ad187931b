//! The policy in force, and which one may follow it. Pure: knows no file and no clock.

use serde::{Deserialize, Serialize};

use crate::policy::Policy;

/// What is remembered about the policy in force, also across restarts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    /// Rises with every change.
    pub(super) version: u64,
    /// A path, or `socket`.
    pub(super) origin: String,
    /// Unix time of its taking effect, in seconds.
    pub(super) applied_unix_s: u64,
    /// Word for word.
    pub(super) text: String,
    /// The policy file as it was when last looked at: it counts again once it says something else.
    pub(super) file: String,
}

/// What to do with a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// It says what the one in force says.
    Same,
    /// Take it, under this version.
    Install(u64),
}

/// An older policy came, or another one under the same version: a replay, or two authors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "it says version {offered}, but version {running} is known here, with other rules; give it version {} or leave the version out",
    running.saturating_add(1)
)]
pub struct Older {
    /// Of the policy that came.
    offered: u64,
    /// The highest known here.
    running: u64,
}

/// Whether and as which version a policy follows the one in force. `floor` is the highest version known
/// here, 0 if none.
pub(super) fn next(running: Option<&Policy>, floor: u64, offered: &Policy) -> Result<Next, Older> {
    if running == Some(offered) {
        return Ok(Next::Same);
    }
    match offered.version() {
        None => Ok(Next::Install(floor.saturating_add(1))),
        Some(version) if version > floor => Ok(Next::Install(version)),
        Some(offered) => Err(Older { offered, running: floor }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(version: &str, limit: u32) -> Policy {
        let text = format!(
            "schema = 1\n{version}\n[[rule]]\nname = \"a\"\nmatch = [{{ protocol = \"udp\" }}]\n\
             limit = {{ source = {limit} }}\nwindow = \"1s\"\n"
        );
        Policy::parse(&text).unwrap().policy
    }

    #[test]
    fn versions_only_rise() {
        let running = policy("version = 7", 5);
        let next = |offered: &Policy| next(Some(&running), 7, offered);
        assert_eq!(next(&policy("version = 7", 5)), Ok(Next::Same));
        assert_eq!(next(&policy("version = 9", 5)), Ok(Next::Install(9)));
        assert_eq!(next(&policy("version = 7", 6)), Err(Older { offered: 7, running: 7 }));
        assert_eq!(next(&policy("version = 3", 5)), Err(Older { offered: 3, running: 7 }));
    }

    #[test]
    fn without_a_version_it_is_one_more_than_the_last() {
        let running = policy("", 5);
        assert_eq!(next(Some(&running), 7, &policy("", 5)), Ok(Next::Same));
        assert_eq!(next(Some(&running), 7, &policy("", 6)), Ok(Next::Install(8)));
        assert_eq!(next(None, 0, &policy("", 6)), Ok(Next::Install(1)));
    }
}
