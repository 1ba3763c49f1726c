"""Deep Q-learning of the cart and pole: replay memory, target network, Huber loss."""

import math
import random
from collections import deque, namedtuple

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim

Transition = namedtuple("Transition", ("state", "action", "next_state", "reward"))

GAMMA = 0.99
EPS_START = 0.9
EPS_END = 0.05
EPS_DECAY = 300
TAU = 0.01
LR = 1e-3


class CartPole:
    """A pole on a cart, pushed to the left (0) or the right (1) with a fixed force."""

    gravity = 9.8
    mass_pole = 0.1
    mass_total = 1.1
    length = 0.5
    force = 10.0
    tau = 0.02

    def __init__(self, rng, limit=200):
        self.rng = rng
        self.limit = limit

    def reset(self):
        self.state = [self.rng.uniform(-0.05, 0.05) for _ in range(4)]
        self.count = 0
        return list(self.state)

    def step(self, action):
        x, x_dot, theta, theta_dot = self.state
        force = self.force if action == 1 else -self.force
        cos, sin = math.cos(theta), math.sin(theta)
        moment = self.mass_pole * self.length
        temp = (force + moment * theta_dot**2 * sin) / self.mass_total
        theta_acc = (self.gravity * sin - cos * temp) / (
            self.length * (4.0 / 3.0 - self.mass_pole * cos**2 / self.mass_total)
        )
        x_acc = temp - moment * theta_acc * cos / self.mass_total
        x, x_dot = x + self.tau * x_dot, x_dot + self.tau * x_acc
        theta, theta_dot = theta + self.tau * theta_dot, theta_dot + self.tau * theta_acc
        self.state = [x, x_dot, theta, theta_dot]
        self.count += 1
        terminated = abs(x) > 2.4 or abs(theta) > 12 * math.pi / 180
        truncated = self.count >= self.limit
        return list(self.state), 1.0, terminated, truncated


class ReplayMemory:
    """The last transitions, to draw batches from."""

    def __init__(self, capacity, rng):
        self.memory = deque(maxlen=capacity)
        self.rng = rng

    def push(self, *args):
        self.memory.append(Transition(*args))

    def sample(self, batch_size):
        return self.rng.sample(self.memory, batch_size)

    def __len__(self):
        return len(self.memory)


class DQN(nn.Module):
    """A network from a state to the value of each action."""

    def __init__(self, n_observations, n_actions, hidden=64):
        super().__init__()
        self.layer1 = nn.Linear(n_observations, hidden)
        self.layer2 = nn.Linear(hidden, hidden)
        self.layer3 = nn.Linear(hidden, n_actions)

    def forward(self, x):
        x = F.relu(self.layer1(x))
        x = F.relu(self.layer2(x))
        return self.layer3(x)


class Agent:
    """The policy and target networks, and how they learn."""

    def __init__(self, rng, batch_size, device):
        self.policy_net = DQN(4, 2).to(device)
        self.target_net = DQN(4, 2).to(device)
        self.target_net.load_state_dict(self.policy_net.state_dict())
        self.target_net.eval()
        self.optimizer = optim.AdamW(self.policy_net.parameters(), lr=LR, amsgrad=True)
        self.memory = ReplayMemory(10000, rng)
        self.rng = rng
        self.batch_size = batch_size
        self.device = device
        self.steps_done = 0

    def select_action(self, state):
        decay = math.exp(-1.0 * self.steps_done / EPS_DECAY)
        threshold = EPS_END + (EPS_START - EPS_END) * decay
        self.steps_done += 1
        if self.rng.random() > threshold:
            with torch.no_grad():
                return self.policy_net(state).max(1)[1].view(1, 1)
        return torch.tensor([[self.rng.randrange(2)]], device=self.device, dtype=torch.long)

    def sample_batch(self):
        transitions = self.memory.sample(self.batch_size)
        batch = Transition(*zip(*transitions, strict=True))

        non_final_mask = torch.tensor(
            [s is not None for s in batch.next_state],
            device=self.device,
            dtype=torch.bool,
        )
        non_final_next_states = torch.cat([s for s in batch.next_state if s is not None])
        state_batch = torch.cat(batch.state)
        action_batch = torch.cat(batch.action)
        reward_batch = torch.cat(batch.reward)
        return state_batch, action_batch, reward_batch, non_final_mask, non_final_next_states

    def learn(self, state, action, reward, non_final_mask, non_final_next_states):
        state_action_values = self.policy_net(state).gather(1, action)
        next_state_values = torch.zeros(self.batch_size, device=self.device)
        next_state_values[non_final_mask] = (
            self.target_net(non_final_next_states).max(1)[0].detach()
        )
        expected_state_action_values = (next_state_values * GAMMA) + reward

        loss = F.smooth_l1_loss(state_action_values, expected_state_action_values.unsqueeze(1))
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_value_(self.policy_net.parameters(), 100)
        self.optimizer.step()
        return loss

    def optimize_model(self):
        if len(self.memory) < self.batch_size:
            return None
        return self.learn(*self.sample_batch()).item()

    def update_target(self):
        target_state = self.target_net.state_dict()
        policy_state = self.policy_net.state_dict()
        for key in policy_state:
            target_state[key] = policy_state[key] * TAU + target_state[key] * (1 - TAU)
        self.target_net.load_state_dict(target_state)


def evaluate(agent, env, episodes):
    """Return the mean length of episodes without exploration."""
    lengths = []
    for _ in range(episodes):
        state = env.reset()
        done = False
        while not done:
            with torch.no_grad():
                q = agent.policy_net(torch.tensor([state], dtype=torch.float32))
            state, _, terminated, truncated = env.step(q.argmax(dim=1).item())
            done = terminated or truncated
        lengths.append(env.count)
    return sum(lengths) / len(lengths)


def main(steps=3000, batch_size=32, seed=3, episodes=3):
    """Learn until the network has been updated `steps` times; return losses and durations."""
    torch.manual_seed(seed)
    rng = random.Random(seed)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    env = CartPole(rng)
    agent = Agent(rng, batch_size, device)

    losses, durations = [], []
    while len(losses) < steps:
        state = torch.tensor(env.reset(), dtype=torch.float32, device=device).unsqueeze(0)
        done = False
        while not done and len(losses) < steps:
            action = agent.select_action(state)
            observation, reward, terminated, truncated = env.step(action.item())
            reward = torch.tensor([reward], device=device)
            done = terminated or truncated
            if terminated:
                next_state = None
            else:
                next_state = torch.tensor(observation, dtype=torch.float32, device=device)
                next_state = next_state.unsqueeze(0)
            agent.memory.push(state, action, next_state, reward)
            state = next_state
            loss = agent.optimize_model()
            if loss is not None:
                losses.append(loss)
            agent.update_target()
        durations.append(env.count)

    with torch.no_grad():
        states = torch.cat([t.state for t in list(agent.memory.memory)[:64]])
        values = agent.policy_net(states)
    return {
        "losses": losses,
        "durations": durations,
        "mean_value": values.max(1)[0].mean().item(),
        "right_actions": (values.max(1)[1] == 1).float().mean().item(),
        "test_length": evaluate(agent, CartPole(random.Random(0)), episodes),
    }


if __name__ == "__main__":
    results = main()
    print(f"episodes {len(results['durations'])}, last ones {results['durations'][-5:]}")
    print(f"mean length without exploration {results['test_length']:.1f}")
