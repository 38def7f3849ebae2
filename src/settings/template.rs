//! The text of a new configuration: the paper's settings for a workload, every key with what it means.

use super::study::sections;
use crate::config::key::{KeyHelp, Only};
use crate::data::DatasetChoice;
use crate::network::{LayerSpec, NetworkChoice};
use crate::optimizer::{OptimizerName, ScheduleName};
use crate::readable::{count, wrapped};

/// Letters of a line of comments.
const WIDTH: usize = 150;

/// Choices of data set, network, optimizer and schedule for a [`template`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choices {
    /// The data set.
    pub dataset: DatasetChoice,
    /// The network.
    pub network: NetworkChoice,
    /// The optimizer.
    pub optimizer: OptimizerName,
    /// The learning-rate schedule.
    pub schedule: ScheduleName,
}

impl Choices {
    /// The value that a new configuration has for a key. Goals, step budgets and search spaces are the paper's (Lee et al., ICLR 2021, section 3
    /// and appendix B); the search spaces stand as the keys' examples.
    fn value(&self, key: &KeyHelp) -> Option<String> {
        let Choices { dataset, network, optimizer, schedule } = self;
        let usual = dataset.usual();
        let path = key.path();
        let example =
            || usual.examples.iter().find(|(of, _)| *of == path).map_or_else(|| key.example.clone(), |(_, value)| (*value).to_owned());
        match path.as_str() {
            "workload.dataset" => Some(match dataset {
                DatasetChoice::Named(name) => format!("\"{name}\""),
                DatasetChoice::Own(own) => {
                    let name = if own.is_named_apart() { format!(", name = \"{}\"", own.name) } else { String::new() };
                    format!("{{ path = {}{name} }}", toml::Value::from(own.path.as_str()))
                }
            }),
            "workload.network" => Some(match network {
                NetworkChoice::Named(name) => format!("\"{name}\""),
                NetworkChoice::Listed(layers) => format!("[\n{}]", layers.iter().map(layer).collect::<String>()),
            }),
            "workload.optimizer" => Some(format!("\"{optimizer}\"")),
            "workload.schedule" => Some(format!("\"{schedule}\"")),
            "workload.goal_error" => Some(usual.goal_error.to_owned()),
            "workload.max_steps" => Some(count(usual.max_steps).replace(',', "_")),
            "workload.evaluate_every" => Some(usual.evaluate_every.to_string()),
            "search.learning_rate" => Some(example()),
            _ => key.default.is_none().then(example),
        }
    }

    /// Whether the study, whose criterion is left to its default, is one of those that a key belongs to, or that need it.
    fn include(&self, only: &Only) -> bool {
        only.includes(self.optimizer.name()) || only.includes(self.schedule.name())
    }
}

/// A line of the list of a network's layers.
fn layer(layer: &LayerSpec) -> String {
    let Ok(toml::Value::Table(mut keys)) = toml::Value::try_from(layer) else { return String::new() };
    let name = keys.remove("layer").map(|name| format!("layer = {name}"));
    let words: Vec<String> = name.into_iter().chain(keys.into_iter().map(|(key, value)| format!("{key} = {value}"))).collect();
    format!("  {{ {} }},\n", words.join(", "))
}

/// A configuration file with comments. Keys that are commented out show their defaults.
pub fn template(choices: &Choices) -> String {
    let Choices { dataset, network, optimizer, .. } = choices;
    let mut text = format!(
        "# A study: {dataset}, {network}, {optimizer}. A line that begins with # is a comment; a key in a comment shows its default.\n\
         # \"dps-train keys NAME\" says more of a key.\n"
    );
    for section in sections() {
        text.push('\n');
        for line in wrapped(&section.meaning.replace('`', ""), WIDTH - 2) {
            text += &format!("# {line}\n");
        }
        let aside = if section.is_optional { "# " } else { "" };
        text += &format!("{aside}[{}]\n", section.name);
        // The keys of a range stand in the ranges.
        for key in section.keys.iter().filter(|key| !key.name.contains('*')) {
            text += &format!("{aside}{}\n", line(choices, key).trim_start_matches(aside));
        }
    }
    text
}

/// The line of a key: its value in the new configuration or, as a comment, its default; and what it means.
fn line(choices: &Choices, key: &KeyHelp) -> String {
    let name = key.name;
    let mut meaning = key.summary().replace('`', "");
    if !key.names.is_empty() {
        let names: Vec<&str> = key.names.iter().map(|(name, _)| *name).collect();
        meaning = format!("{meaning}: {}", names.join(", "));
    }
    if let Some(only) = key.only.filter(|only| !choices.include(only)) {
        let words = only.words(str::to_owned);
        return match &key.default {
            Some(default) => format!("# {name} = {default} # Only for {words}. {meaning}"),
            None => format!("# {name}: only for {words}. {meaning}"),
        };
    }
    if key.is_optional && !key.needed.is_some_and(|needed| choices.include(&needed)) {
        return format!("# {name}: may be left out. {meaning}");
    }
    match (choices.value(key), &key.default) {
        (Some(value), _) => format!("{name} = {value} # {meaning}"),
        (None, default) => format!("# {name} = {} # {meaning}", default.as_deref().unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{DatasetName, OwnDataset};
    use crate::network::NetworkName;
    use crate::optimizer::{Range, Scale};
    use crate::settings;

    /// All that can be chosen.
    fn all() -> Vec<Choices> {
        let mut all = Vec::new();
        for dataset in DatasetName::ALL {
            for optimizer in OptimizerName::ALL {
                for schedule in ScheduleName::ALL {
                    let network = NetworkChoice::Named(DatasetChoice::from(dataset).usual().network);
                    all.push(Choices { dataset: dataset.into(), network, optimizer, schedule });
                }
            }
        }
        all
    }

    #[test]
    fn every_template_is_a_configuration() {
        let own = DatasetChoice::Own(OwnDataset { path: "my \"data\"/digits.npz".into(), name: "digits".into() });
        for path in ["my digits.npz", "zählen.npz", "mnist.npz", "..", "digits.npz"] {
            let named = Choices { dataset: DatasetChoice::Own(OwnDataset::at(path.into())), ..all()[0].clone() };
            let loaded = settings::parse("new.toml", &template(&named), &[]).unwrap_or_else(|error| panic!("{path}: {error}"));
            assert_eq!(loaded.study.workload.dataset, named.dataset);
        }
        let listed = |name: NetworkName| Choices {
            dataset: own.clone(),
            network: NetworkChoice::Listed(name.layers(7)),
            optimizer: OptimizerName::AdamW,
            schedule: ScheduleName::Constant,
        };
        let falling = |schedule| Choices { schedule, ..listed(NetworkName::Lenet300x100) };
        let of_own = NetworkName::ALL.iter().copied().map(listed).chain(ScheduleName::ALL.iter().copied().map(falling));
        for choices in all().into_iter().chain(of_own) {
            let loaded = settings::parse("new.toml", &template(&choices), &[]).unwrap_or_else(|error| panic!("{choices:?}: {error}"));
            let workload = loaded.study.workload;
            let acts = |range: Range| range.scale != Scale::Integer || range.min < f64::from(workload.max_steps);
            assert!(loaded.study.search.ranges().all(|(_, range)| acts(range)), "{choices:?}: a range of steps that no trial takes");
            assert_eq!(
                (workload.dataset, workload.network, workload.optimizer, workload.schedule),
                (choices.dataset, choices.network, choices.optimizer, choices.schedule)
            );
        }
    }

    #[test]
    fn its_comments_show_each_default() {
        for choices in all() {
            let text = template(&choices);
            let plain = settings::parse("new.toml", &text, &[]).unwrap().study;
            // The comments, taken at their word, make the same study.
            let commented = |line: &str| {
                let line = line.strip_prefix("# ")?;
                let is_key = line
                    .split_once(" = ")
                    .is_some_and(|(key, _)| key.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_'));
                (is_key || ["[smoothness]", "[confirm]"].contains(&line)).then(|| line.to_owned())
            };
            let lines = text.lines().filter(|line| !line.contains("# Only for the "));
            let told: String = lines.map(|line| commented(line).unwrap_or_else(|| line.to_owned()) + "\n").collect();
            let told = settings::parse("told.toml", &told, &[]).unwrap().study;
            assert!(told.smoothness.is_some() && told.confirm.is_some());
            assert_eq!(settings::Study { smoothness: None, confirm: None, ..told.clone() }, plain);
        }
    }
}
