//! What a start of a study is: when, and on which hosts.

use std::time::SystemTime;

use super::place::Place;
use crate::comm::host_name;
use crate::records::Start;
use crate::settings::each_once;
use crate::version::VERSION_AND_COMMIT;

/// Bytes that names of hosts may have; names beyond them are left out.
const NAMES_BYTES: usize = 240;

/// This start, but for its number and the end of the one before; the hosts are known on rank 0. Every rank must call it.
pub(super) fn this_start(place: &Place) -> Start {
    let names_of_ranks = place.world.gather(host_name().as_bytes());
    let hosts = each_once(names_of_ranks.iter().map(|name| String::from_utf8_lossy(name).into_owned()));
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    Start {
        began: now.map_or(0, |now| now.as_micros() as u64),
        ranks: place.world.size() as u32,
        threads: place.threads as u32,
        hosts: hosts.len() as u32,
        host_names: names(&hosts),
        program: VERSION_AND_COMMIT.into(),
        ..Start::default()
    }
}

/// The names with commas between, those that fit.
fn names(hosts: &[String]) -> String {
    let mut text = String::new();
    for name in hosts {
        if text.len() + name.len() > NAMES_BYTES {
            return text + ", …";
        }
        text += if text.is_empty() { "" } else { ", " };
        text += name;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_names_are_cut_between_two() {
        let hosts: Vec<String> = (0..100).map(|number| format!("node{number}")).collect();
        let text = names(&hosts);
        assert!(text.starts_with("node0, node1, ") && text.ends_with(", …") && text.len() < 255, "{text}");
        assert_eq!(names(&hosts[..2]), "node0, node1");
    }
}
