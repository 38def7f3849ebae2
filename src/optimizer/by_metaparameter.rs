//! Values by the names of metaparameters: what a configuration says of them, and what a trial trains with.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::metaparameter::Metaparameter;

/// A value for each of some metaparameters. It is written as a map from their names.
#[derive(Clone, Copy, PartialEq)]
pub struct ByMetaparameter<T>([Option<T>; Metaparameter::NAMES.len()]);

/// The values that a trial trains with.
pub type Metaparameters = ByMetaparameter<f64>;

impl<T: Copy> ByMetaparameter<T> {
    /// The value for `name`.
    pub fn get(&self, name: Metaparameter) -> Option<T> {
        self.0[name as usize]
    }

    /// Puts a value in place of the one for `name`, or takes it out.
    pub fn set(&mut self, name: Metaparameter, value: Option<T>) {
        self.0[name as usize] = value;
    }

    /// Maps each value by `of`, in the order of [`Metaparameter`].
    pub fn map<U: Copy>(&self, mut of: impl FnMut(T) -> U) -> ByMetaparameter<U> {
        self.iter().map(|(name, value)| (name, of(value))).collect()
    }

    /// The values that are there, in the order of [`Metaparameter`].
    pub fn iter(&self) -> impl Iterator<Item = (Metaparameter, T)> + '_ {
        Metaparameter::ALL.iter().zip(&self.0).filter_map(|(&name, &value)| Some((name, value?)))
    }
}

impl<T> Default for ByMetaparameter<T> {
    fn default() -> Self {
        ByMetaparameter([const { None }; Metaparameter::NAMES.len()])
    }
}

impl<T: Copy> FromIterator<(Metaparameter, T)> for ByMetaparameter<T> {
    fn from_iter<I: IntoIterator<Item = (Metaparameter, T)>>(values: I) -> Self {
        let mut all = ByMetaparameter::default();
        values.into_iter().for_each(|(name, value)| all.set(name, Some(value)));
        all
    }
}

impl<T: Copy, const COUNT: usize> From<[(Metaparameter, T); COUNT]> for ByMetaparameter<T> {
    fn from(values: [(Metaparameter, T); COUNT]) -> Self {
        values.into_iter().collect()
    }
}

impl<T: Copy + fmt::Debug> fmt::Debug for ByMetaparameter<T> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_map().entries(self.iter().map(|(name, value)| (name.name(), value))).finish()
    }
}

impl<T: Copy + Serialize> Serialize for ByMetaparameter<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let values: Vec<(&str, T)> = self.iter().map(|(name, value)| (name.name(), value)).collect();
        serializer.collect_map(values)
    }
}

impl<'de, T: Copy + Deserialize<'de>> Deserialize<'de> for ByMetaparameter<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let named = BTreeMap::<String, T>::deserialize(deserializer)?;
        named.into_iter().map(|(name, value)| Ok((name.parse().map_err(D::Error::custom)?, value))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_written_by_name_and_read_again() {
        let values = ByMetaparameter::from([(Metaparameter::Momentum, 0.9), (Metaparameter::LearningRate, 0.1)]);
        assert_eq!(format!("{values:?}"), r#"{"learning_rate": 0.1, "momentum": 0.9}"#);
        let bytes = postcard::to_stdvec(&values).unwrap();
        assert_eq!(postcard::from_bytes::<ByMetaparameter<f64>>(&bytes).unwrap(), values);
        // A name that is no metaparameter's.
        let unknown = postcard::to_stdvec(&std::collections::BTreeMap::from([("warmth", 0.5)])).unwrap();
        assert!(postcard::from_bytes::<ByMetaparameter<f64>>(&unknown).is_err());
    }
}
