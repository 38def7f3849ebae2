//! Collective calls: what the members of a group put in, and when each has what it wants.

use std::collections::BTreeMap;

#[derive(Debug, Clone, PartialEq)]
pub enum Message {
    Words(Vec<u64>),
    Floats(Vec<f32>),
    Bytes(Vec<u8>),
}

impl Message {
    fn len(&self) -> usize {
        match self {
            Message::Words(words) => words.len(),
            Message::Floats(floats) => floats.len(),
            Message::Bytes(bytes) => bytes.len(),
        }
    }
}

/// Whose messages a member waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wants {
    All,
    /// The first member's alone, as in a broadcast.
    First,
}

/// Groups of tasks, and the calls that they meet in. Every member counts its calls; calls with the same number belong together.
#[derive(Default)]
pub struct Groups {
    members: Vec<Vec<usize>>,
    parts: BTreeMap<(usize, u64, usize), usize>,
    meetings: BTreeMap<(usize, u64), Meeting>,
}

struct Meeting {
    kind: &'static str,
    messages: Vec<Option<Message>>,
    /// Members that have taken the messages.
    taken: usize,
}

impl Groups {
    pub fn add(&mut self, members: Vec<usize>) -> usize {
        self.members.push(members);
        self.members.len() - 1
    }

    pub fn members(&self, group: usize) -> &[usize] {
        &self.members[group]
    }

    /// Puts in the message of `task`.
    ///
    /// # Errors
    /// A sentence where members call different things, or send words of different number.
    pub fn put(&mut self, group: usize, number: u64, kind: &'static str, task: usize, message: Message) -> Result<(), String> {
        let members = &self.members[group];
        let place = members.iter().position(|&member| member == task).expect("a member");
        let none = || Meeting { kind, messages: vec![None; members.len()], taken: 0 };
        let meeting = self.meetings.entry((group, number)).or_insert_with(none);
        let (known, length) = (meeting.kind, message.len());
        let other = meeting.messages.iter().flatten().map(Message::len).find(|&other| other != length);
        meeting.messages[place] = Some(message);
        if known != kind {
            return Err(format!("call {number} of group {group} is {known} for one rank and {kind} for rank {place}"));
        }
        match other {
            Some(other) if kind == "all_gather_words" => {
                Err(format!("call {number} of group {group}, {kind}, has {other} words from one rank and {length} from rank {place}"))
            }
            _ => Ok(()),
        }
    }

    pub fn is_there(&self, group: usize, number: u64, wants: Wants) -> bool {
        self.meetings.get(&(group, number)).is_some_and(|meeting| match wants {
            Wants::All => meeting.messages.iter().all(Option::is_some),
            Wants::First => meeting.messages[0].is_some(),
        })
    }

    /// The messages, once they are there, for one member.
    pub fn take(&mut self, group: usize, number: u64, wants: Wants) -> Option<Vec<Message>> {
        if !self.is_there(group, number, wants) {
            return None;
        }
        let meeting = self.meetings.get_mut(&(group, number))?;
        meeting.taken += 1;
        let messages = match wants {
            Wants::All => meeting.messages.iter().flatten().cloned().collect(),
            Wants::First => meeting.messages[0].iter().cloned().collect(),
        };
        if meeting.taken == meeting.messages.len() {
            self.meetings.remove(&(group, number));
        }
        Some(messages)
    }

    /// The group of the members of `group` whose color is that of `task`; its rank among them, and how many they are.
    pub fn split(&mut self, task: usize, group: usize, number: u64, color: usize, colors: &[usize]) -> (usize, usize, usize) {
        let members: Vec<usize> =
            self.members[group].iter().zip(colors).filter(|&(_, &other)| other == color).map(|(&member, _)| member).collect();
        let place = members.iter().position(|&member| member == task).expect("a member");
        let size = members.len();
        let next = self.members.len();
        let part = *self.parts.entry((group, number, color)).or_insert(next);
        if part == next {
            self.members.push(members);
        }
        (part, place, size)
    }

    pub fn kind(&self, group: usize, number: u64) -> &'static str {
        self.meetings.get(&(group, number)).map_or("nothing", |meeting| meeting.kind)
    }

    /// The members that have not come.
    pub fn missing(&self, group: usize, number: u64) -> Vec<usize> {
        let Some(meeting) = self.meetings.get(&(group, number)) else { return Vec::new() };
        self.members[group].iter().zip(&meeting.messages).filter(|(_, message)| message.is_none()).map(|(&member, _)| member).collect()
    }
}
