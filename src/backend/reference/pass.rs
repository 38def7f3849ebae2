//! One image on its way through a network and back.

use super::number::Number;
use crate::network::{
    Convolution, Dense, DenseOutput, EPSILON, Epilogue, GlobalMean, GroupNorm, Layer, Map, Network, Pool, PoolKind, Slot,
};

/// An image's maps, and the gradients of its loss with respect to them. Maps have no border here.
pub(super) struct Pass<'a, T> {
    network: &'a Network,
    weights: &'a [T],
    /// Temperature of the loss: logits are divided by it.
    temperature: f32,
    /// Whether group normalisations normalise; else they scale and shift alone.
    pub normalises: bool,
    /// Where gradients of parameters are added.
    gradient: &'a mut [T],
    /// `[height][width][channels]` of each map.
    maps: Vec<Vec<T>>,
    /// The gradient of each map, to which every layer that reads the map adds.
    map_gradients: Vec<Vec<T>>,
    /// For each layer that takes maxima: where each maximum was found among the values compared.
    chosen: Vec<Vec<usize>>,
    label: usize,
    /// `[classes]`.
    pub logits: Vec<T>,
    logit_gradients: Vec<T>,
    /// Summed over the images so far.
    pub loss: T,
}

fn zeros<T: Number>(length: usize) -> Vec<T> {
    vec![T::from(0.0); length]
}

/// to += factor · from.
fn add<T: Number>(to: &mut [T], factor: T, from: &[T]) {
    to.iter_mut().zip(from).for_each(|(to, &from)| *to = *to + factor * from);
}

/// Σ a · b.
fn product<T: Number>(a: &[T], b: &[T]) -> T {
    a.iter().zip(b).fold(T::from(0.0), |sum, (&a, &b)| sum + a * b)
}

fn rectified<T: Number>(values: &[T]) -> Vec<T> {
    values.iter().map(|value| value.rectified()).collect()
}

/// The gradient before a ReLU: that behind it, where its output (or its input) is positive.
fn through_relu<T: Number>(gradient: &[T], values: &[T]) -> Vec<T> {
    gradient.iter().zip(values).map(|(&gradient, value)| if value.value() > 0.0 { gradient } else { T::from(0.0) }).collect()
}

/// Calls `visit` for each position of a convolution's output with each position of its input that this one reads, borders left out: with the index
/// of the output's first channel, of the input's, and of the weights `[in][out]` between them.
fn visit_products(layer: &Convolution, mut visit: impl FnMut(usize, usize, usize)) {
    let (input, output, kernel) = (layer.input_map, layer.output, layer.kernel);
    let inside = |place: usize, side: usize| place.checked_sub(input.before).filter(|&place| place < side);
    for position in 0..output.height * output.width {
        for tap in 0..kernel * kernel {
            let y = inside(position / output.width * layer.stride + tap / kernel, input.height);
            let x = inside(position % output.width * layer.stride + tap % kernel, input.width);
            if let (Some(y), Some(x)) = (y, x) {
                visit(position * output.channels, (y * input.width + x) * input.channels, tap * input.channels * output.channels);
            }
        }
    }
}

/// The indices of the values in each window of a map, in reading order; the windows are of `rows` × `columns`, one for each position and channel of
/// the pooled map.
fn windows(map: Map, [rows, columns, stride]: [usize; 3]) -> impl Iterator<Item = impl Iterator<Item = usize>> {
    let [high, wide] = [(map.height - rows) / stride + 1, (map.width - columns) / stride + 1];
    (0..high * wide * map.channels).map(move |window| {
        let (position, channel) = (window / map.channels, window % map.channels);
        let (y, x) = (position / wide * stride, position % wide * stride);
        (0..rows * columns).map(move |i| ((y + i / columns) * map.width + x + i % columns) * map.channels + channel)
    })
}

/// Where the largest value of each window is: the first of equal ones; a NaN wins over everything after it.
fn largest<T: Number>(map: Map, values: &[T], window: [usize; 3]) -> Vec<usize> {
    let value = |place: usize| values[place].value();
    let better = |best, place| if value(best).is_nan() || value(place) <= value(best) { best } else { place };
    windows(map, window).filter_map(|places| places.reduce(better)).collect()
}

/// One by the values of a window.
fn share<T: Number>([rows, columns, _]: [usize; 3]) -> T {
    T::from(1.0) / T::from((rows * columns) as f32)
}

/// The mean of each window.
fn means<T: Number>(map: Map, values: &[T], window: [usize; 3]) -> Vec<T> {
    windows(map, window).map(|places| places.fold(T::from(0.0), |sum, place| sum + values[place]) * share(window)).collect()
}

/// The gradient of the values of which [`means`] have the gradient `received`.
fn means_backward<T: Number>(map: Map, received: &[T], window: [usize; 3]) -> Vec<T> {
    let mut gradient = zeros(map.inner_len());
    for (places, &received) in windows(map, window).zip(received) {
        places.for_each(|place| gradient[place] = gradient[place] + received * share(window));
    }
    gradient
}

/// The mean of each group's values in a map that a normalisation reads.
fn group_means<T: Number>(layer: &GroupNorm, values: impl Iterator<Item = T>) -> Vec<T> {
    let mut sums: Vec<T> = zeros(layer.channels);
    values.enumerate().for_each(|(place, value)| sums[place % layer.channels] = sums[place % layer.channels] + value);
    let count = T::from((layer.positions * layer.group_channels) as f32);
    sums.chunks(layer.group_channels).map(|sums| sums.iter().fold(T::from(0.0), |sum, &one| sum + one) / count).collect()
}

/// The group of the value at a place of a map that a normalisation reads.
fn group(layer: &GroupNorm, place: usize) -> usize {
    place % layer.channels / layer.group_channels
}

/// The values of a map with mean 0 and variance 1 in each group, and 1 / √(variance + [`EPSILON`]) of each group.
fn normalised<T: Number>(layer: &GroupNorm, values: &[T]) -> (Vec<T>, Vec<T>) {
    let means = group_means(layer, values.iter().copied());
    let centred: Vec<T> = values.iter().enumerate().map(|(place, &value)| value - means[group(layer, place)]).collect();
    let variances = group_means(layer, centred.iter().map(|&value| value * value));
    let factors: Vec<T> = variances.into_iter().map(|variance| T::from(1.0) / (variance + T::from(EPSILON)).sqrt()).collect();
    (centred.into_iter().enumerate().map(|(place, value)| value * factors[group(layer, place)]).collect(), factors)
}

/// The shortcut of a residual block whose input has the shape `from`: values to add to its output of shape `to`; see [`Epilogue::Stream`].
fn shortcut<T: Number>(from: Map, stream: &[T], to: Map) -> Vec<T> {
    if from == to {
        return stream.to_vec();
    }
    let factor = from.height / to.height;
    let mut added = zeros(to.inner_len());
    let means = means(from, &rectified(stream), [factor; 3]);
    added.chunks_mut(to.channels).zip(means.chunks(from.channels)).for_each(|(to, means)| to[..means.len()].copy_from_slice(means));
    added
}

/// The gradient of the stream of which [`shortcut`] has the gradient `received`.
fn shortcut_backward<T: Number>(from: Map, stream: &[T], to: Map, received: &[T]) -> Vec<T> {
    if from == to {
        return received.to_vec();
    }
    let factor = from.height / to.height;
    let of_means: Vec<T> = received.chunks(to.channels).flat_map(|position| &position[..from.channels]).copied().collect();
    through_relu(&means_backward(from, &of_means, [factor; 3]), stream)
}

impl<'a, T: Number> Pass<'a, T> {
    pub(super) fn new(network: &'a Network, weights: &'a [T], temperature: f32, gradient: &'a mut [T]) -> Pass<'a, T> {
        assert_eq!(weights.len(), network.parameters(), "parameters");
        let maps: Vec<Vec<T>> = network.maps.iter().map(|map| zeros(map.inner_len())).collect();
        let (chosen, logits) = (vec![Vec::new(); network.layers.len()], zeros(network.classes));
        let (map_gradients, logit_gradients, loss) = (maps.clone(), logits.clone(), T::from(0.0));
        Pass {
            network,
            weights,
            temperature,
            normalises: true,
            gradient,
            maps,
            map_gradients,
            chosen,
            label: 0,
            logits,
            logit_gradients,
            loss,
        }
    }

    /// The maps and the logits of a normalised image, `[height][width][channels]`.
    pub(super) fn forward(&mut self, image: &[f32]) {
        assert_eq!(image.len(), self.maps[0].len(), "values of an image");
        self.maps[0] = image.iter().map(|&value| value.into()).collect();
        for (index, layer) in self.network.layers.iter().enumerate() {
            match layer {
                Layer::Convolution(layer) => self.convolution_forward(index, layer),
                Layer::Pool(layer) => self.pool_forward(index, layer),
                Layer::GlobalMean(layer) => self.global_mean_forward(layer),
                Layer::GroupNorm(layer) => self.group_norm_forward(layer),
                Layer::Dense(layer) => self.dense_forward(layer),
            }
        }
    }

    /// The forward pass of an image, whose loss is added.
    pub(super) fn add_loss(&mut self, image: &[f32], label: u16) {
        self.label = label.into();
        self.forward(image);
        self.softmax_cross_entropy();
    }

    /// Adds the gradient of the loss that was added last.
    pub(super) fn add_gradient(&mut self) {
        self.map_gradients.iter_mut().for_each(|gradient| gradient.fill(T::from(0.0)));
        for (index, layer) in self.network.layers.iter().enumerate().rev() {
            match layer {
                Layer::Convolution(layer) => self.convolution_backward(index, layer),
                Layer::Pool(layer) => self.pool_backward(index, layer),
                Layer::GlobalMean(layer) => self.global_mean_backward(layer),
                Layer::GroupNorm(layer) => self.group_norm_backward(layer),
                Layer::Dense(layer) => self.dense_backward(layer),
            }
        }
    }

    /// Adds the gradient of the sum of the logits, and returns the sum.
    pub(super) fn add_logit_sum_gradient(&mut self) -> T {
        self.logit_gradients.fill(T::from(1.0));
        self.add_gradient();
        self.logits.iter().fold(T::from(0.0), |sum, &logit| sum + logit)
    }

    /// The bias of a layer, or zeros where it has none.
    fn bias(&self, offset: usize, outputs: usize, has_bias: bool) -> Vec<T> {
        if has_bias { self.weights[offset..][..outputs].to_vec() } else { zeros(outputs) }
    }

    /// The gradient of a map, or of what its ReLU read.
    fn received(&self, map: Slot, relu: bool) -> Vec<T> {
        if relu { through_relu(&self.map_gradients[map], &self.maps[map]) } else { self.map_gradients[map].clone() }
    }

    /// Adds to the gradient of a map.
    fn send(&mut self, map: Slot, gradient: &[T]) {
        add(&mut self.map_gradients[map], T::from(1.0), gradient);
    }

    /// The gradient of the values, of shape `map`, among which the layer has chosen maxima.
    fn of_chosen(&self, index: usize, received: &[T], map: Map) -> Vec<T> {
        let mut gradient = zeros(map.inner_len());
        self.chosen[index].iter().zip(received).for_each(|(&place, &received)| gradient[place] = gradient[place] + received);
        gradient
    }

    fn convolution_forward(&mut self, index: usize, layer: &Convolution) {
        let (inputs, outputs) = (layer.input_map.channels, layer.output.channels);
        let (input, weights) = (&self.maps[layer.input], &self.weights[layer.weights..][..layer.weight_count()]);
        let mut sums = self.bias(layer.bias, outputs, layer.has_bias).repeat(layer.output.height * layer.output.width);
        visit_products(layer, |to, from, place| {
            let rows = weights[place..].chunks_exact(outputs);
            input[from..][..inputs].iter().zip(rows).for_each(|(&value, row)| add(&mut sums[to..][..outputs], value, row));
        });
        match layer.epilogue {
            Epilogue::Linear { written } => self.maps[written] = sums,
            Epilogue::Relu { rectified: written } => self.maps[written] = rectified(&sums),
            Epilogue::ReluMaxPool { pooled } => {
                let sums = rectified(&sums);
                self.chosen[index] = largest(layer.output, &sums, [2; 3]);
                self.maps[pooled] = self.chosen[index].iter().map(|&place| sums[place]).collect();
            }
            Epilogue::Stream { stream, rectified: written, shortcut: from } => {
                if let Some(from) = from {
                    add(&mut sums, T::from(1.0), &shortcut(self.network.maps[from], &self.maps[from], layer.output));
                }
                self.maps[written] = rectified(&sums);
                self.maps[stream] = sums;
            }
        }
    }

    fn convolution_backward(&mut self, index: usize, layer: &Convolution) {
        let (inputs, outputs) = (layer.input_map.channels, layer.output.channels);
        // The gradient of the sums.
        let mut sums = self.received(layer.epilogue.written(), !matches!(layer.epilogue, Epilogue::Linear { .. }));
        match layer.epilogue {
            Epilogue::ReluMaxPool { .. } => sums = self.of_chosen(index, &sums, layer.output),
            Epilogue::Stream { stream, shortcut: from, .. } => {
                add(&mut sums, T::from(1.0), &self.map_gradients[stream]);
                if let Some(from) = from {
                    self.send(from, &shortcut_backward(self.network.maps[from], &self.maps[from], layer.output, &sums));
                }
            }
            Epilogue::Linear { .. } | Epilogue::Relu { .. } => {}
        }
        if layer.has_bias {
            sums.chunks(outputs).for_each(|sums| add(&mut self.gradient[layer.bias..][..outputs], T::from(1.0), sums));
        }
        let (input, input_gradient) = (&self.maps[layer.input], &mut self.map_gradients[layer.input]);
        visit_products(layer, |to, from, place| {
            let sums = &sums[to..][..outputs];
            for (input_channel, from) in (from..from + inputs).enumerate() {
                let place = layer.weights + place + input_channel * outputs;
                add(&mut self.gradient[place..][..outputs], input[from], sums);
                input_gradient[from] = input_gradient[from] + product(&self.weights[place..][..outputs], sums);
            }
        });
    }

    fn pool_forward(&mut self, index: usize, layer: &Pool) {
        let (map, values) = (self.network.maps[layer.input], &self.maps[layer.input]);
        let window = [layer.size, layer.size, layer.stride];
        let pooled = match layer.kind {
            PoolKind::Average => means(map, values, window),
            PoolKind::Max => {
                self.chosen[index] = largest(map, values, window);
                self.chosen[index].iter().map(|&place| values[place]).collect()
            }
        };
        self.maps[layer.output] = if layer.relu { rectified(&pooled) } else { pooled };
    }

    fn pool_backward(&mut self, index: usize, layer: &Pool) {
        let (map, received) = (self.network.maps[layer.input], self.received(layer.output, layer.relu));
        let gradient = match layer.kind {
            PoolKind::Max => self.of_chosen(index, &received, map),
            PoolKind::Average => means_backward(map, &received, [layer.size, layer.size, layer.stride]),
        };
        self.send(layer.input, &gradient);
    }

    fn global_mean_forward(&mut self, layer: &GlobalMean) {
        let map = self.network.maps[layer.input];
        self.maps[layer.output] = means(map, &self.maps[layer.input], [map.height, map.width, 1]);
    }

    fn global_mean_backward(&mut self, layer: &GlobalMean) {
        let map = self.network.maps[layer.input];
        self.send(layer.input, &means_backward(map, &self.map_gradients[layer.output], [map.height, map.width, 1]));
    }

    fn group_norm_forward(&mut self, layer: &GroupNorm) {
        let mut values = self.maps[layer.input].clone();
        if self.normalises {
            (values, _) = normalised(layer, &values);
        }
        let (scale, bias) = (&self.weights[layer.scale..][..layer.channels], &self.weights[layer.bias..][..layer.channels]);
        for position in values.chunks_mut(layer.channels) {
            position.iter_mut().zip(scale.iter().zip(bias)).for_each(|(value, (&scale, &bias))| *value = *value * scale + bias);
        }
        self.maps[layer.output] = if layer.relu { rectified(&values) } else { values };
    }

    fn group_norm_backward(&mut self, layer: &GroupNorm) {
        let (received, values) = (self.received(layer.output, layer.relu), &self.maps[layer.input]);
        let (values, factors) = if self.normalises { normalised(layer, values) } else { (values.clone(), Vec::new()) };
        let scale = &self.weights[layer.scale..][..layer.channels];
        for (position, received) in values.chunks(layer.channels).zip(received.chunks(layer.channels)) {
            let products = position.iter().zip(received).map(|(&value, &received)| value * received);
            self.gradient[layer.scale..].iter_mut().zip(products).for_each(|(gradient, product)| *gradient = *gradient + product);
            add(&mut self.gradient[layer.bias..][..layer.channels], T::from(1.0), received);
        }
        // The gradient of the normalised values, then that of the values.
        let mut gradient: Vec<T> = received.iter().zip(scale.iter().cycle()).map(|(&received, &scale)| received * scale).collect();
        if self.normalises {
            let means = group_means(layer, gradient.iter().copied());
            let slopes = group_means(layer, gradient.iter().zip(&values).map(|(&gradient, &value)| gradient * value));
            for (place, (gradient, value)) in gradient.iter_mut().zip(values).enumerate() {
                let group = group(layer, place);
                *gradient = factors[group] * (*gradient - means[group] - value * slopes[group]);
            }
        }
        self.send(layer.input, &gradient);
    }

    fn dense_forward(&mut self, layer: &Dense) {
        let mut sums = self.bias(layer.bias, layer.outputs, layer.has_bias);
        let rows = self.weights[layer.weights..].chunks_exact(layer.outputs);
        self.maps[layer.input].iter().zip(rows).for_each(|(&value, row)| add(&mut sums, value, row));
        match layer.output {
            DenseOutput::Logits => self.logits = sums,
            DenseOutput::Hidden { written, relu } => self.maps[written] = if relu { rectified(&sums) } else { sums },
        }
    }

    fn dense_backward(&mut self, layer: &Dense) {
        let sums = match layer.output {
            DenseOutput::Logits => self.logit_gradients.clone(),
            DenseOutput::Hidden { written, relu } => self.received(written, relu),
        };
        if layer.has_bias {
            add(&mut self.gradient[layer.bias..][..layer.outputs], T::from(1.0), &sums);
        }
        let input_gradient = &mut self.map_gradients[layer.input];
        for (input, &value) in self.maps[layer.input].iter().enumerate() {
            let place = layer.weights + input * layer.outputs;
            add(&mut self.gradient[place..][..layer.outputs], value, &sums);
            input_gradient[input] = input_gradient[input] + product(&self.weights[place..][..layer.outputs], &sums);
        }
    }

    fn softmax_cross_entropy(&mut self) {
        let temperature = T::from(self.temperature);
        let logits: Vec<T> = self.logits.iter().map(|&logit| logit / temperature).collect();
        // The largest logit is subtracted from all logits so that no power overflows; the loss does not depend on the subtraction.
        let largest = logits.iter().copied().fold(logits[0], |best, logit| if logit.value() > best.value() { logit } else { best });
        let powers: Vec<T> = logits.iter().map(|&logit| (logit - largest).exp()).collect();
        let sum = powers.iter().fold(T::from(0.0), |sum, &power| sum + power);
        self.logit_gradients = powers.into_iter().map(|power| power / sum / temperature).collect();
        self.logit_gradients[self.label] = self.logit_gradients[self.label] - T::from(1.0) / temperature;
        self.loss = self.loss + sum.ln() + largest - logits[self.label];
    }
}
